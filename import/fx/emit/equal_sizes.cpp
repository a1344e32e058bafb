#include "import/fx/emit/equal_sizes.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "graph/infer/symbol_fact.hpp"
#include "graph/same_type.hpp"
#include "graph/text/type_text.hpp"

namespace pw::fx {

namespace {

// How well a size is known: a number, else a symbol, else the shortest.
std::tuple<bool, bool, std::size_t, std::string> cost_of(const Dims& dims, DimId size) {
  std::string text = dims.print(size);
  const std::size_t length = text.size();
  return {!dims.value(size).has_value(), !dims.is_symbol(size), length, std::move(text)};
}

// Returns the values from `least` to `most` for which it holds, as a range, or nothing if there is
// no such value or no such range.
template <class Holds>
std::optional<SymbolFact> values_of(std::int64_t least, std::int64_t most, const Holds& holds) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = least; value <= most; ++value)
    if (holds(value)) values.push_back(value);
  if (values.empty()) return std::nullopt;
  SymbolFact out;
  out.min = values.front();
  out.max = values.back();
  if (values.size() > 1) out.multiple = values[1] - values[0];
  const auto count = (out.max - out.min) / out.multiple + 1;
  const bool even = out.min % out.multiple == 0;
  if (values.size() == 1) out.multiple = 1;
  return even && count == static_cast<std::int64_t>(values.size()) ? std::optional(out)
                                                                   : std::nullopt;
}

}  // namespace

// Selects the best-known size of each class.
void EqualSizes::add(DimId a, DimId b) {
  const Dims& dims = context_.dims;
  a = representative(a);
  b = representative(b);
  if (a == b || solve(a, b)) return;
  if (cost_of(dims, a) < cost_of(dims, b)) std::swap(a, b);
  if (!dims.value(a)) pairs_.emplace(a, b);
}

// Eliminates an operation from all sizes, as in Gaussian elimination; returns false if the equation
// determines none.
bool EqualSizes::solve(DimId a, DimId b) {
  Dims& dims = context_.dims;
  const std::optional<DimSolution> found = dims.solve(dims.sub(a, b));
  if (!found) return false;
  const std::map<DimId, DimId> one{{found->operation, found->value}};
  std::map<DimId, DimId> solved = solved_;
  for (auto& [operation, value] : solved) {
    value = dims.replace(value, one);
    if (!value.valid()) return false;
  }
  solved.emplace(found->operation, found->value);
  solved_ = std::move(solved);
  return true;
}

DimId EqualSizes::replaced(DimId size) {
  const DimId out = context_.dims.replace(size, solved_);
  return out.valid() ? out : size;
}

// Returns false if they are equal for values of a symbol that no range expresses, so that a run
// could not refuse the others.
bool EqualSizes::narrow(DimId a, DimId b, std::int64_t most) {
  Dims& dims = context_.dims;
  std::vector<std::string> symbols = dims.symbols(a);
  for (std::string& symbol : dims.symbols(b))
    if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(std::move(symbol));
  if (symbols.size() != 1) return false;
  const auto fact = graph_.facts.symbols.find(symbols.front());
  if (fact == graph_.facts.symbols.end()) return false;
  const SymbolFact before = fact->second;
  if (before.multiple != 1 || before.max - before.min > most) return false;
  const auto found = values_of(before.min, before.max, [&](std::int64_t value) {
    const std::map<std::string, std::int64_t, std::less<>> at{{symbols.front(), value}};
    const auto left = dims.evaluate(a, at), right = dims.evaluate(b, at);
    return left && right && *left == *right;
  });
  if (!found) return false;
  fact->second.min = found->min;
  fact->second.max = found->max;
  fact->second.multiple = found->multiple;
  if (found->min != before.min || found->max != before.max || found->multiple != 1)
    report_.notes.push_back(
        fmt::format("assumed: {} is in {}, because {} must equal {}; other sizes are refused",
                    symbols.front(), print_range(fact->second), dims.print(a), dims.print(b)));
  return true;
}

void EqualSizes::read(const FxOptions& options, Symbols& symbols) {
  const auto dim = [&](const std::string& text) {
    const TextResult<DimId> read = parse_dim(context_.dims, text);
    return read ? symbols.renamed(*read) : DimId();
  };
  for (const auto& [left, right] : options.equal)
    if (const DimId a = dim(left), b = dim(right); a.valid() && b.valid()) add(a, b);
  constexpr std::size_t kMostTried = 32;
  std::size_t tried = 0;
  for (const FxGuard& guard : options.guards) {
    const DimId a = dim(guard.left), b = dim(guard.right);
    if (!a.valid() || !b.valid())
      report_.unchecked.push_back("a guard, " + guard.text);
    else if (guard.op == Compare::eq &&
             (a == b || (++tried <= kMostTried && narrow(a, b, options.symbol_max))))
      add(a, b);
    else
      report_.checked.push_back({guard.op, a, b, guard.text});
  }
}

DimId EqualSizes::representative(DimId size) {
  Dims& dims = context_.dims;
  constexpr int kMostSteps = 8;
  size = replaced(dims.decided(size, graph_.facts));
  for (int step = 0; step < kMostSteps; ++step) {
    if (const auto found = pairs_.find(size); found != pairs_.end()) {
      size = found->second;
      continue;
    }
    DimId best = size;
    for (const auto& [one, other] : pairs_) {
      const DimId zero = dims.sub(one, other);
      for (const DimId next : {dims.add(size, zero), dims.sub(size, zero)})
        if (next.valid() && cost_of(dims, next) < cost_of(dims, best)) best = next;
    }
    if (best == size) break;
    size = best;
  }
  return size;
}

bool EqualSizes::same_size(DimId a, DimId b) {
  if (a == b || representative(a) == representative(b)) return true;
  Dims& dims = context_.dims;
  if (dims.prove(Compare::eq, a, b, graph_.facts) == Truth::yes) return true;
  const DimId difference = dims.sub(a, b);
  // Their difference may be that of two equal sizes, or a multiple of it.
  return difference.valid() && std::ranges::any_of(pairs_, [&](const auto& pair) {
           const DimId zero = dims.sub(pair.first, pair.second);
           const bool known = !zero.valid() || dims.value(zero);
           const DimId times = known ? DimId() : dims.div(difference, zero);
           return times.valid() && dims.value(times) && dims.mul(times, zero) == difference;
         });
}

bool EqualSizes::same_types(TypeId a, TypeId b) {
  if (a == Types::unknown() || b == Types::unknown()) return false;
  if (same_type(context_, a, b, graph_.facts)) return true;
  if (empty()) return false;
  const Type x = context_.types[a], y = context_.types[b];
  return x.dtype == y.dtype &&
         std::equal(x.shape.begin(), x.shape.end(), y.shape.begin(), y.shape.end(),
                    [&](DimId i, DimId k) { return same_size(i, k); });
}

}  // namespace pw::fx
