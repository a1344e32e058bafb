// Sizes are equal if guards say so: a dump comes from a program that runs only where its guards
// hold.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "graph/infer/symbol_fact.hpp"
#include "graph/same_type.hpp"
#include "graph/text/type_text.hpp"
#include "import/fx/apply.hpp"

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
void Converter::make_equal_sizes(DimId a, DimId b) {
  const Dims& dims = context_.dims;
  a = representative(a);
  b = representative(b);
  if (a == b) return;
  if (cost_of(dims, a) < cost_of(dims, b)) std::swap(a, b);
  if (!dims.value(a)) equal_sizes_.emplace(a, b);
}

// Returns false if they are equal for values of a symbol that no range expresses, so that a run
// could not refuse the others.
bool Converter::narrow_to_equal(DimId a, DimId b) {
  Dims& dims = context_.dims;
  std::vector<std::string> symbols = dims.symbols(a);
  for (std::string& symbol : dims.symbols(b))
    if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end())
      symbols.push_back(std::move(symbol));
  if (symbols.size() != 1) return false;
  const auto fact = graph_.facts.symbols.find(symbols.front());
  if (fact == graph_.facts.symbols.end()) return false;
  const SymbolFact before = fact->second;
  if (before.multiple != 1 || before.max - before.min > options_.symbol_max) return false;
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

void Converter::read_equal_sizes() {
  const auto each = [&](const auto& pairs, const auto& take) {
    for (const auto& [left, right] : pairs) {
      const TextResult<DimId> a = parse_dim(context_.dims, left),
                              b = parse_dim(context_.dims, right);
      if (a && b) take(symbols_.renamed(*a), symbols_.renamed(*b));
    }
  };
  each(options_.equal, [&](DimId a, DimId b) { make_equal_sizes(a, b); });
  std::size_t tried = 0;
  each(options_.guards, [&](DimId a, DimId b) {
    constexpr std::size_t kMostTried = 32;
    if (a == b || ++tried > kMostTried) return;
    if (narrow_to_equal(a, b)) make_equal_sizes(a, b);
  });
}

// The best known size that is equal by the ranges, by a pair, or by the difference of one.
DimId Converter::representative(DimId size) {
  Dims& dims = context_.dims;
  constexpr int kMostSteps = 8;
  size = dims.decided(size, graph_.facts);
  for (int step = 0; step < kMostSteps; ++step) {
    if (const auto found = equal_sizes_.find(size); found != equal_sizes_.end()) {
      size = found->second;
      continue;
    }
    DimId best = size;
    for (const auto& [one, other] : equal_sizes_) {
      const DimId zero = dims.sub(one, other);
      for (const DimId next : {dims.add(size, zero), dims.sub(size, zero)})
        if (next.valid() && cost_of(dims, next) < cost_of(dims, best)) best = next;
    }
    if (best == size) break;
    size = best;
  }
  return size;
}

bool Converter::same_size(DimId a, DimId b) {
  if (a == b || representative(a) == representative(b)) return true;
  Dims& dims = context_.dims;
  if (dims.prove(Compare::eq, a, b, graph_.facts) == Truth::yes) return true;
  const DimId apart = dims.sub(a, b);
  // Their difference may be that of two equal sizes, or a multiple of it.
  return apart.valid() &&
         std::any_of(equal_sizes_.begin(), equal_sizes_.end(), [&](const auto& pair) {
           const DimId zero = dims.sub(pair.first, pair.second);
           const bool known = !zero.valid() || dims.value(zero);
           const DimId times = known ? DimId() : dims.div(apart, zero);
           return times.valid() && dims.value(times) && dims.mul(times, zero) == apart;
         });
}

bool Converter::same_sizes(TypeId a, TypeId b) {
  if (a == Types::unknown() || b == Types::unknown()) return false;
  if (same_type(context_, a, b, graph_.facts)) return true;
  if (equal_sizes_.empty()) return false;
  const Type x = context_.types[a], y = context_.types[b];
  return x.dtype == y.dtype &&
         std::equal(x.shape.begin(), x.shape.end(), y.shape.begin(), y.shape.end(),
                    [&](DimId i, DimId k) { return same_size(i, k); });
}

// Returns the tensor with the best-known extents, as a slice of all of it if the extents change.
bool Converter::unify_sizes(Value& value, Maker& make) {
  bool changed = false;
  for (Value& item : value.items) changed = unify_sizes(item, make) || changed;
  const Type* type = value.kind == Value::Kind::tensor ? type_of(value.tensor) : nullptr;
  if (!type) return changed;
  const Shape shape = type->shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const DimId to = representative(shape[axis]);
    if (to == shape[axis]) continue;
    const ValueId part = part_of_axis(make, value.tensor, axis, context_.dims.constant(0), to);
    if (!part.valid()) return changed;
    value.tensor = part;
    changed = true;
  }
  return changed;
}

bool Converter::unify_sizes(Bound& bound, const Site& site) {
  if (equal_sizes_.empty()) return false;
  Maker make = maker(site);
  bool changed = false;
  for (std::optional<Value>& value : bound.values)
    if (value) changed = unify_sizes(*value, make) || changed;
  return changed;
}

}  // namespace pw::fx
