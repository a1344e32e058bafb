// Unification of sizes. An equation is solved for a symbol that occurs linearly; the construction
// then restarts, because earlier types have changed. The equation a · b = c · d is solved by four
// new symbols (Euler's four-number theorem). What no equation decides becomes cases.
#include "proof/sketch/size_equations.hpp"

#include <utility>

#include "graph/text/type_text.hpp"

namespace pw::proof {

/// Requires two sizes to be equal in this case.
void SizeEquations::equal(DimId a, DimId b) {
  if (a == b) return;
  if (!a.valid() || !b.valid()) throw Mistyped{"a size beyond 64 bits"};
  Dims& dims = context_.dims;
  if (dims.prove(Compare::eq, a, b, graph_.facts) == Truth::yes) return;
  auto [x, y] = integers_.reduced(integers_.of(dims, a), integers_.of(dims, b));
  if (x == y) return;
  const auto solution = integers_.solve(integers_.sub(x, y));
  if (!solution) four_numbers(x, y);
  if (!solution) throw Mistyped{fmt::format("{} is not {}", dims.print(a), dims.print(b))};
  learn(solution->first, solution->second);
}

/// a · b = c · d: there are p, q, r, s with a = p · q, b = r · s, c = p · r, d = q · s. Of a
/// number c each way to write it as p · r is a case.
void SizeEquations::four_numbers(Ix x, Ix y) {
  auto left = integers_.symbols_of(x), right = integers_.symbols_of(y);
  if (left && left->size() != 2) std::swap(left, right);
  if (!left || !right || left->size() != 2 || right->empty() || right->size() > 2) return;
  const auto product = [&](const std::string& a, const std::string& b) {
    return context_.dims.mul(symbol(a), symbol(b));
  };
  const std::string all = (*left)[0] + "_" + (*left)[1] + "_" + right->back();
  const std::string p = "p_" + all, q = "q_" + all, r = "r_" + all, s = "s_" + all;
  std::map<std::string, DimId, std::less<>> learnt;
  if (right->size() == 2) {
    learnt = {{(*left)[0], product(p, q)},
              {(*left)[1], product(r, s)},
              {(*right)[0], product(p, r)},
              {(*right)[1], product(q, s)}};
  } else {
    const auto factor =
        integers_.factor_of(y) == 1 ? integers_.factor_of(x) : integers_.factor_of(y);
    std::vector<std::int64_t> divisors;
    for (std::int64_t n = 1; n <= factor; ++n)
      if (factor % n == 0) divisors.push_back(n);
    if (divisors.empty() || divisors.size() > 12) return;
    const std::int64_t first = divisors[ask("divisor " + all, divisors.size())];
    Dims& dims = context_.dims;
    learnt = {{(*left)[0], dims.mul(dims.constant(first), symbol(q))},
              {(*left)[1], dims.mul(dims.constant(factor / first), symbol(s))},
              {(*right)[0], product(q, s)}};
  }
  for (auto& [other, known] : found_) known = context_.dims.substitute(known, learnt);
  for (const auto& [name, dim] : learnt) found_.insert_or_assign(name, dim);
  throw Restart{};
}

void SizeEquations::learn(const std::string& name, Ix value) {
  const auto dim = parse_dim(context_.dims, integers_.print(value));
  if (!dim) throw Mistyped{"a size that cannot be written: " + integers_.print(value)};
  std::map<std::string, DimId, std::less<>> one = {{name, *dim}};
  for (auto& [other, known] : found_) known = context_.dims.substitute(known, one);
  found_.insert_or_assign(name, *dim);
  throw Restart{};
}

void SizeEquations::multiple(DimId a, DimId b) {
  if (context_.dims.divides(b, a, graph_.facts) == Truth::yes) return;
  std::string name = "q";
  for (const std::string& part : context_.dims.symbols(a)) name += "_" + part;
  Dims& dims = context_.dims;
  const DimId two = dims.constant(2), quotient = symbol(name);
  // 2 p = r q: q or r is even.
  if (dims.is_symbol(b) && dims.divides(two, a, graph_.facts) == Truth::yes) {
    if (ask("even " + name, 2) == 0) return equal(dims.div(a, two), dims.mul(b, quotient));
    return equal(b, dims.mul(two, symbol(name + "_half")));
  }
  equal(a, dims.mul(b, quotient));
}

}  // namespace pw::proof
