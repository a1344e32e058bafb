// Exports the part of Converter for sizes that are equal by what guards say, not by their forms: a
// dump is of a program that runs only where its guards hold.
#include <algorithm>
#include <tuple>

#include "graph/import/fx_apply.hpp"
#include "graph/same_type.hpp"
#include "graph/type_text.hpp"

namespace pw::fx {

// Of each class the best known one: a number, else a symbol, else the shortest.
void Converter::read_equal_sizes() {
  Dims& dims = context_.dims;
  const auto cost = [&](DimId size) {
    const std::string text = dims.print(size);
    return std::tuple(!dims.value(size).has_value(), !dims.is_symbol(size), text.size(), text);
  };
  for (const auto& [a, b] : options_.equal) {
    const TextResult<DimId> x = parse_dim(dims, a), y = parse_dim(dims, b);
    if (!x || !y) continue;
    DimId left = representative(symbols_.renamed(*x)), right = representative(symbols_.renamed(*y));
    if (left == right || !left.valid() || !right.valid()) continue;
    if (cost(left) < cost(right)) std::swap(left, right);
    if (!dims.value(left)) equal_sizes_.emplace(left, right);
  }
}

DimId Converter::representative(DimId size) const {
  for (auto found = equal_sizes_.find(size); found != equal_sizes_.end();
       found = equal_sizes_.find(size))
    size = found->second;
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

// The tensor with the best known extents, where it has others: a slice of all of it.
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
