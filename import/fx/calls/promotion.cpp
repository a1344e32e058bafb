#include <algorithm>
#include <iterator>

#include "base/try.hpp"
#include "graph/wrapped.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {

// Parts of several types are brought to the one that they promote to.
Applied convert_cat(Emitter& emitter, const Bound& bound, const Outputs& wanted, const Site& site) {
  Bound out = bound;
  std::optional<Value>* parts = nullptr;
  for (std::optional<Value>& value : out.values)
    if (value && value->kind == Value::Kind::list) parts = &value;
  if (!parts) return kNotThis;
  std::optional<DType> common;
  for (const Value& part : (*parts)->items) {
    const Type* type = part.kind == Value::Kind::tensor ? emitter.type_of(part.tensor) : nullptr;
    if (!type) return apply_direct(emitter, bound, wanted, site);
    common = common ? promote(*common, false, type->dtype, false) : type->dtype;
  }
  for (Value& part : (*parts)->items) {
    if (emitter.type_of(part.tensor)->dtype == *common) continue;
    Applied same = cast(emitter, part.tensor, *common, kUnnamed, site);
    if (!same || !*same) return same;
    part.tensor = (*same)->front();
  }
  return apply_direct(emitter, out, wanted, site);
}

// A number as a tensor of rank 0: f32 where no type is named, whatever the number.
Applied convert_scalar(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  const Value *number = bound.find("s"), *dtype = bound.find("dtype");
  std::optional<Attribute> value =
      number ? as_attribute(emitter.dims(), *number, AttributeKind::float_) : std::nullopt;
  if (value)
    if (auto whole = std::get_if<std::int64_t>(&*value)) value = static_cast<double>(*whole);
  if (!value || !std::holds_alternative<double>(*value) || !dtype) return kNotThis;
  const DType type = dtype->kind == Value::Kind::dtype ? dtype->dtype : DType::f32;
  value = wrapped(std::get<double>(*value), type);
  return some(emitter.emit("full", {}, {{"shape", Shape()}, {"value", *value}, {"dtype", type}},
                           wanted, site));
}

// stack: each part with one more axis, and these joined.
Applied convert_stack(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                      const Site& site) {
  const Value *parts = bound.find("tensors"), *dim = bound.find("dim");
  if (!parts || parts->kind != Value::Kind::list || parts->items.empty() || !dim) return kNotThis;
  const Type* first = parts->items[0].kind == Value::Kind::tensor
                          ? emitter.type_of(parts->items[0].tensor)
                          : nullptr;
  if (!first) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(emitter.dims(), *dim), first->shape.size() + 1);
  if (!axis) return kNotThis;
  Bound out = bound;
  for (std::optional<Value>& value : out.values) {
    if (!value || value->kind != Value::Kind::list) continue;
    for (Value& part : value->items) {
      const Type* type = part.kind == Value::Kind::tensor ? emitter.type_of(part.tensor) : nullptr;
      if (!type) return kNotThis;
      Shape shape = type->shape;
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), emitter.dims().constant(1));
      Applied wider = reshape_to(emitter, part.tensor, std::move(shape), kUnnamed, site);
      if (!wider || !*wider) return wider;
      part.tensor = (*wider)->front();
    }
  }
  return convert_cat(emitter, out, wanted, site);
}

// unbind: parts of one element each, without their axis.
Applied convert_unbind(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Value* dim = bound.find("dim");
  const Type* type = x ? emitter.type_of(*x) : nullptr;
  if (!type || !dim) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(emitter.dims(), *dim), type->shape.size());
  if (!axis) return kNotThis;
  Shape rest = type->shape;
  std::optional<std::int64_t> count = emitter.dims().value(rest[*axis]);
  constexpr std::int64_t kMaxParts = 4096;
  if (!count || *count < 1 || *count > kMaxParts) return kNotThis;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(*axis));
  Shape sizes(static_cast<std::size_t>(*count), emitter.dims().constant(1));
  Results parts = PW_TRY(emitter.emit(
      "split", {*x}, {{"dim", static_cast<std::int64_t>(*axis)}, {"sizes", sizes}}, {}, site));
  Results out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Outputs name{i < wanted.size() ? wanted[i] : Wanted()};
    Applied part = reshape_to(emitter, parts[i], rest, name, site);
    if (!part || !*part) return part;
    out.push_back((*part)->front());
  }
  return std::optional(std::move(out));
}

}  // namespace pw::fx
