#include <algorithm>

#include "import/fx/calls/apply.hpp"

namespace pw::fx {

// start + i * step for `length` places, calculated in i64.
Applied convert_iota(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                     const Site& site) {
  const Value &length = *bound.find("length"), &start = *bound.find("start"),
              &step = *bound.find("step"), &dtype = *bound.find("dtype");
  if (length.kind != Value::Kind::integer || start.kind != Value::Kind::integer ||
      step.kind != Value::Kind::integer || dtype.kind != Value::Kind::dtype ||
      !is_integer(dtype.dtype) || emitter.dims().value(length.dim).value_or(0) < 0)
    return kNotThis;
  Maker make(emitter, site);
  const bool counts = emitter.dims().value(start.dim) == 0 && emitter.dims().value(step.dim) == 1;
  const bool plain = counts && dtype.dtype == DType::i64;
  const ValueId places =
      make("iota", {}, {{"shape", Shape{length.dim}}}, plain ? wanted : kUnnamed);
  if (places.valid())
    emitter.effects().once(), emitter.effects().add_maker(places);  // its literal may be a count
  ValueId out = places;
  for (const auto& [op, number, neutral] :
       {std::tuple("mul", &step, 1), std::tuple("add", &start, 0)}) {
    if (emitter.dims().value(number->dim) == neutral) continue;
    const std::optional<ValueId> by = emitter.as_operand(*number, site);
    if (!by) return kNotThis;
    out = make(op, {out, *by}, {});
  }
  if (plain) return make.done(out);
  if (dtype.dtype != DType::i64)
    return make.done(make("cast", {out}, {{"dtype", dtype.dtype}}, wanted));
  return make.done(make("detach", {out}, {}, wanted));
}

// Axes of one element at these places of the result.
Applied convert_expand_dims(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                            const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const std::optional<Shape> listed = as_shape(*bound.find("dimensions"));
  if (!type || !listed) return kNotThis;
  std::vector<bool> added(type->shape.size() + listed->size(), false);
  for (DimId d : *listed) {
    const std::optional<std::size_t> axis = axis_of(emitter.dims().value(d), added.size());
    if (!axis || added[*axis]) return kNotThis;
    added[*axis] = true;
  }
  Shape shape;
  for (std::size_t i = 0, next = 0; i < added.size(); ++i)
    shape.push_back(added[i] ? emitter.dims().constant(1) : type->shape[next++]);
  return reshape_to(emitter, *x, std::move(shape), wanted, site);
}

// An axis as two, the outer one of a given length.
Applied convert_split_dim(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                          const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const std::optional<std::size_t> axis = axis_of(emitter, bound.find("dim"), type);
  const Value& outer = *bound.find("outer_length");
  if (!axis || outer.kind != Value::Kind::integer) return kNotThis;
  Shape shape = type->shape;
  const DimId inner = emitter.dims().div(shape[*axis], outer.dim);
  if (!inner.valid() || emitter.dims().mul(inner, outer.dim) != shape[*axis]) return kNotThis;
  shape[*axis] = outer.dim;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1, inner);
  return reshape_to(emitter, *x, std::move(shape), wanted, site);
}

// Axis i of the operand is axis broadcast_dimensions[i] of the result; all else repeats it.
Applied convert_broadcast_in_dim(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                                 const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const std::optional<Shape> shape = as_shape(*bound.find("shape")),
                             places = as_shape(*bound.find("broadcast_dimensions"));
  if (!type || !shape || !places || places->size() != type->shape.size()) return kNotThis;
  Shape apart(shape->size(), emitter.dims().constant(1));
  std::int64_t before = -1;
  for (std::size_t i = 0; i < places->size(); ++i) {
    const std::optional<std::int64_t> at = emitter.dims().value((*places)[i]);
    if (!at || *at <= before || *at >= static_cast<std::int64_t>(shape->size())) return kNotThis;
    before = *at;
    apart[static_cast<std::size_t>(*at)] = type->shape[i];
  }
  Maker make(emitter, site);
  const ValueId wide =
      apart == type->shape ? *x : make("reshape", {*x}, {{"shape", std::move(apart)}});
  return make.done(make("expand", {wide}, {{"shape", *shape}}, wanted));
}

// A slice along each axis.
Applied convert_slices(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const std::optional<Shape> starts = as_shape(*bound.find("start_indices")),
                             ends = as_shape(*bound.find("limit_indices")),
                             steps = as_shape(*bound.find("strides"));
  const std::size_t rank = type ? type->shape.size() : 0;
  if (!type || !starts || !ends || starts->size() != rank || ends->size() != rank ||
      (steps && steps->size() != rank))
    return kNotThis;
  const Shape whole = type->shape;
  Maker make(emitter, site);
  ValueId out = *x;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::optional<std::int64_t> step = steps ? emitter.dims().value((*steps)[i]) : 1;
    if (!step || *step < 1) return kNotThis;
    if (emitter.dims().value((*starts)[i]) == 0 && (*ends)[i] == whole[i] && *step == 1) continue;
    out = make("slice", {out},
               {{"dim", static_cast<std::int64_t>(i)},
                {"start", bound_of(emitter.dims(), (*starts)[i])},
                {"end", bound_of(emitter.dims(), (*ends)[i])},
                {"step", *step}});
  }
  return make.done(make("detach", {out}, {}, wanted));
}

}  // namespace pw::fx
