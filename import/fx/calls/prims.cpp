#include <algorithm>

#include "import/fx/apply.hpp"

namespace pw::fx {
// start + i * step for `length` places, calculated in i64.
Applied Converter::iota(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  const Value &length = *bound.find("length"), &start = *bound.find("start"),
              &step = *bound.find("step"), &dtype = *bound.find("dtype");
  if (length.kind != Value::Kind::integer || start.kind != Value::Kind::integer ||
      step.kind != Value::Kind::integer || dtype.kind != Value::Kind::dtype ||
      !is_integer(dtype.dtype) || context_.dims.value(length.dim).value_or(0) < 0)
    return kNotThis;
  Maker make = maker(site);
  const bool counts = context_.dims.value(start.dim) == 0 && context_.dims.value(step.dim) == 1;
  const bool plain = counts && dtype.dtype == DType::i64;
  const ValueId places =
      make("iota", {}, {{key("shape"), Shape{length.dim}}}, plain ? wanted : kUnnamed);
  if (places.valid()) once(), makers_.insert(places);  // its literal may be a count
  ValueId out = places;
  for (const auto& [op, number, neutral] :
       {std::tuple("mul", &step, 1), std::tuple("add", &start, 0)}) {
    if (context_.dims.value(number->dim) == neutral) continue;
    const std::optional<ValueId> by = as_operand(*number, site);
    if (!by) return kNotThis;
    out = make(op, {out, *by}, {});
  }
  if (plain) return make.done(out);
  if (dtype.dtype != DType::i64)
    return make.done(make("cast", {out}, {{key("dtype"), dtype.dtype}}, wanted));
  return make.done(make("detach", {out}, {}, wanted));
}

// Axes of one element at these places of the result.
Applied Converter::expand_dims(const Bound& bound, const std::vector<Wanted>& wanted,
                               const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const std::optional<Shape> listed = as_shape(*bound.find("dimensions"));
  if (!type || !listed) return kNotThis;
  std::vector<bool> added(type->shape.size() + listed->size(), false);
  for (DimId d : *listed) {
    const std::optional<std::size_t> axis = axis_of(context_.dims.value(d), added.size());
    if (!axis || added[*axis]) return kNotThis;
    added[*axis] = true;
  }
  Shape shape;
  for (std::size_t i = 0, next = 0; i < added.size(); ++i)
    shape.push_back(added[i] ? context_.dims.constant(1) : type->shape[next++]);
  return reshape_to(*x, std::move(shape), wanted, site);
}

// An axis as two, the outer one of a given length.
Applied Converter::split_dim(const Bound& bound, const std::vector<Wanted>& wanted,
                             const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const std::optional<std::size_t> axis =
      type ? axis_of(as_int(*bound.find("dim")), type->shape.size()) : std::nullopt;
  const Value& outer = *bound.find("outer_length");
  if (!axis || outer.kind != Value::Kind::integer) return kNotThis;
  Shape shape = type->shape;
  const DimId inner = context_.dims.div(shape[*axis], outer.dim);
  if (!inner.valid() || context_.dims.mul(inner, outer.dim) != shape[*axis]) return kNotThis;
  shape[*axis] = outer.dim;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1, inner);
  return reshape_to(*x, std::move(shape), wanted, site);
}

// Axis i of the operand is axis broadcast_dimensions[i] of the result; all else repeats it.
Applied Converter::broadcast_in_dim(const Bound& bound, const std::vector<Wanted>& wanted,
                                    const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const std::optional<Shape> shape = as_shape(*bound.find("shape")),
                             places = as_shape(*bound.find("broadcast_dimensions"));
  if (!type || !shape || !places || places->size() != type->shape.size()) return kNotThis;
  Shape apart(shape->size(), context_.dims.constant(1));
  std::int64_t before = -1;
  for (std::size_t i = 0; i < places->size(); ++i) {
    const std::optional<std::int64_t> at = context_.dims.value((*places)[i]);
    if (!at || *at <= before || *at >= static_cast<std::int64_t>(shape->size())) return kNotThis;
    before = *at;
    apart[static_cast<std::size_t>(*at)] = type->shape[i];
  }
  Maker make = maker(site);
  const ValueId wide =
      apart == type->shape ? *x : make("reshape", {*x}, {{key("shape"), std::move(apart)}});
  return make.done(make("expand", {wide}, {{key("shape"), *shape}}, wanted));
}

// A slice along each axis.
Applied Converter::slices(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  const std::optional<Shape> starts = as_shape(*bound.find("start_indices")),
                             ends = as_shape(*bound.find("limit_indices")),
                             steps = as_shape(*bound.find("strides"));
  const std::size_t rank = type ? type->shape.size() : 0;
  if (!type || !starts || !ends || starts->size() != rank || ends->size() != rank ||
      (steps && steps->size() != rank))
    return kNotThis;
  const Shape whole = type->shape;
  Maker make = maker(site);
  ValueId out = *x;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::optional<std::int64_t> step = steps ? context_.dims.value((*steps)[i]) : 1;
    if (!step || *step < 1) return kNotThis;
    if (context_.dims.value((*starts)[i]) == 0 && (*ends)[i] == whole[i] && *step == 1) continue;
    out = make("slice", {out},
               {{key("dim"), static_cast<std::int64_t>(i)},
                {key("start"), bound_of(context_.dims, (*starts)[i])},
                {key("end"), bound_of(context_.dims, (*ends)[i])},
                {key("step"), *step}});
  }
  return make.done(make("detach", {out}, {}, wanted));
}

}  // namespace pw::fx
