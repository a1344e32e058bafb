// Unification of sizes. An equation is solved for a symbol that occurs linearly; the construction
// then restarts, because earlier types have changed. The equation a · b = c · d is solved by four
// new symbols (Euler's four-number theorem). What no equation decides becomes cases. An equation
// that is neither solved nor impossible leaves the rule unproved: skipping it would skip matches.
#include "proof/sketch/size_equations.hpp"

#include <numeric>
#include <utility>

#include "graph/text/type_text.hpp"

namespace pw::proof {

/// Requires two sizes to be equal in this case.
void SizeEquations::equal(DimId a, DimId b) {
  if (a == b) return;
  if (!a.valid() || !b.valid()) throw Undecided{"a size beyond 64 bits"};
  Dims& dims = context_.dims;
  if (dims.prove(Compare::eq, a, b, graph_.facts) == Truth::yes) return;
  auto [x, y] = integers_.reduced(integers_.of(dims, a), integers_.of(dims, b));
  if (x == y) return;
  if (const auto solution = integers_.solve(integers_.sub(x, y)))
    learn({{solution->first, dim_of(solution->second)}});
  solve_products(x, y);
  std::string sizes = fmt::format("{} is not {}", dims.print(a), dims.print(b));
  if (impossible(integers_.sub(x, y))) throw Mistyped{std::move(sizes)};
  throw Undecided{std::move(sizes)};
}

/// Returns true if no sizes make the difference 0.
bool SizeEquations::impossible(Ix difference) {
  const Ix one = integers_.constant(1);
  if (integers_.nonnegative(integers_.sub(difference, one)) ||
      integers_.nonnegative(integers_.sub(integers_.negated(difference), one)))
    return true;
  std::int64_t shared = 0, constant = 0;  // multiples of `shared` are never -constant
  for (const auto& [monomial, factor] : integers_.polynomial(difference))
    (monomial.empty() ? constant : shared) = std::gcd(monomial.empty() ? 0 : shared, factor);
  return shared != 0 && constant % shared != 0;
}

/// Solves k · a · b = l · c · d, where a to d are sizes of which some may be absent and the numbers
/// k and l have no common factor. Of k · a = l · c, a is a multiple of l and c one of k. With both
/// numbers 1 there are p, q, r, s with a = p · q, b = r · s, c = p · r, d = q · s. With a number l
/// in place of c, each way to write it as p · r is a case.
void SizeEquations::solve_products(Ix x, Ix y) {
  auto left = integers_.symbols_of(x), right = integers_.symbols_of(y);
  if (!left || !right) return;
  std::int64_t k = integers_.factor_of(x), l = integers_.factor_of(y);
  if (k < 1 || l < 1) return;
  if (right->size() > left->size()) {
    std::swap(left, right);
    std::swap(k, l);
  }
  const std::int64_t shared = std::gcd(k, l);
  k /= shared;
  l /= shared;
  Dims& dims = context_.dims;
  const auto times = [&](std::int64_t number, const std::string& name) {
    return dims.mul(dims.constant(number), symbol(name));
  };
  if (right->size() == 1 && (k > 1 || left->size() == 1)) {
    const std::string own = "t_" + left->front() + "_" + right->front();
    if (left->size() > 1) learn({{(*right)[0], times(k, own)}});
    learn({{(*left)[0], times(l, own)}, {(*right)[0], times(k, own)}});
  }
  if (k != 1 || left->size() != 2 || right->size() > 2) return;
  std::string all = (*left)[0] + "_" + (*left)[1];
  if (!right->empty()) all += "_" + right->back();
  const std::string p = "p_" + all, q = "q_" + all, r = "r_" + all, s = "s_" + all;
  const auto product = [&](const std::string& a, const std::string& b) {
    return dims.mul(symbol(a), symbol(b));
  };
  if (right->size() == 2) {
    if (l != 1) return;
    learn({{(*left)[0], product(p, q)},
           {(*left)[1], product(r, s)},
           {(*right)[0], product(p, r)},
           {(*right)[1], product(q, s)}});
  }
  constexpr std::int64_t kMostDivided = 1 << 20;
  if (l > kMostDivided) return;
  std::vector<std::int64_t> divisors;
  for (std::int64_t n = 1; n <= l; ++n)
    if (l % n == 0) divisors.push_back(n);
  if (divisors.size() > 12) return;
  const std::int64_t first = divisors[ask("divisor " + all, divisors.size())];
  if (right->empty())
    learn({{(*left)[0], dims.constant(first)}, {(*left)[1], dims.constant(l / first)}});
  learn({{(*left)[0], times(first, q)},
         {(*left)[1], times(l / first, s)},
         {(*right)[0], product(q, s)}});
}

void SizeEquations::learn(const SolvedSizes& sizes) {
  for (auto& [other, known] : found_) known = context_.dims.substitute(known, sizes);
  for (const auto& [name, dim] : sizes) found_.insert_or_assign(name, dim);
  throw Restart{};
}

DimId SizeEquations::dim_of(Ix value) {
  const auto dim = parse_dim(context_.dims, integers_.print(value));
  if (!dim) throw Undecided{"a size that cannot be written: " + integers_.print(value)};
  return *dim;
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
