#include <algorithm>

#include "import/fx/calls/apply.hpp"

namespace pw::fx {

// start + i * step for `length` places, calculated in i64.
Applied convert_iota(const KnownCall& call) {
  const Value &length = *call.find("length"), &start = *call.find("start"),
              &step = *call.find("step"), &dtype = *call.find("dtype");
  if (length.kind != Value::Kind::integer || start.kind != Value::Kind::integer ||
      step.kind != Value::Kind::integer || dtype.kind != Value::Kind::dtype ||
      !is_integer(dtype.dtype) || call.dims().value(length.dim).value_or(0) < 0)
    return kNotThis;
  Maker make(call.emitter, call.site);
  const bool counts = call.dims().value(start.dim) == 0 && call.dims().value(step.dim) == 1;
  const bool plain = counts && dtype.dtype == DType::i64;
  const ValueId places =
      make("iota", {}, {{"shape", Shape{length.dim}}}, plain ? call.wanted : kUnnamed);
  if (places.valid())
    call.emitter.effects().once(),
        call.emitter.effects().add_maker(places);  // its literal may be a count
  ValueId out = places;
  for (const auto& [op, number, neutral] :
       {std::tuple("mul", &step, 1), std::tuple("add", &start, 0)}) {
    if (call.dims().value(number->dim) == neutral) continue;
    const std::optional<ValueId> by = call.emitter.as_operand(*number, call.site);
    if (!by) return kNotThis;
    out = make(op, {out, *by}, {});
  }
  if (plain) return make.done(out);
  if (dtype.dtype != DType::i64)
    return make.done(make("cast", {out}, {{"dtype", dtype.dtype}}, call.wanted));
  return make.done(make("detach", {out}, {}, call.wanted));
}

// Axes of one element at these places of the result.
Applied convert_expand_dims(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::optional<Shape> listed = as_shape(*call.find("dimensions"));
  if (!type || !listed) return kNotThis;
  std::vector<bool> added(type->shape.size() + listed->size(), false);
  for (DimId d : *listed) {
    const std::optional<std::size_t> axis = axis_of(call.dims().value(d), added.size());
    if (!axis || added[*axis]) return kNotThis;
    added[*axis] = true;
  }
  Shape shape;
  for (std::size_t i = 0, next = 0; i < added.size(); ++i)
    shape.push_back(added[i] ? call.dims().constant(1) : type->shape[next++]);
  return reshape_to(call, *x, std::move(shape));
}

// An axis as two, the outer one of a given length.
Applied convert_split_dim(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::optional<std::size_t> axis = call.axis("dim", type);
  const Value& outer = *call.find("outer_length");
  if (!axis || outer.kind != Value::Kind::integer) return kNotThis;
  Shape shape = type->shape;
  const DimId inner = call.dims().div(shape[*axis], outer.dim);
  if (!inner.valid() || call.dims().mul(inner, outer.dim) != shape[*axis]) return kNotThis;
  shape[*axis] = outer.dim;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1, inner);
  return reshape_to(call, *x, std::move(shape));
}

// Axis i of the operand is axis broadcast_dimensions[i] of the result; all else repeats it.
Applied convert_broadcast_in_dim(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::optional<Shape> shape = as_shape(*call.find("shape")),
                             places = as_shape(*call.find("broadcast_dimensions"));
  if (!type || !shape || !places || places->size() != type->shape.size()) return kNotThis;
  Shape aligned(shape->size(), call.dims().constant(1));
  std::int64_t before = -1;
  for (std::size_t i = 0; i < places->size(); ++i) {
    const std::optional<std::int64_t> at = call.dims().value((*places)[i]);
    if (!at || *at <= before || *at >= static_cast<std::int64_t>(shape->size())) return kNotThis;
    before = *at;
    aligned[static_cast<std::size_t>(*at)] = type->shape[i];
  }
  Maker make(call.emitter, call.site);
  const ValueId wide =
      aligned == type->shape ? *x : make("reshape", {*x}, {{"shape", std::move(aligned)}});
  return make.done(make("expand", {wide}, {{"shape", *shape}}, call.wanted));
}

// A slice along each axis.
Applied convert_slices(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::optional<Shape> starts = as_shape(*call.find("start_indices")),
                             ends = as_shape(*call.find("limit_indices")),
                             steps = as_shape(*call.find("strides"));
  const std::size_t rank = type ? type->shape.size() : 0;
  if (!type || !starts || !ends || starts->size() != rank || ends->size() != rank ||
      (steps && steps->size() != rank))
    return kNotThis;
  const Shape whole = type->shape;
  Maker make(call.emitter, call.site);
  ValueId out = *x;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::optional<std::int64_t> step = steps ? call.dims().value((*steps)[i]) : 1;
    if (!step || *step < 1) return kNotThis;
    if (call.dims().value((*starts)[i]) == 0 && (*ends)[i] == whole[i] && *step == 1) continue;
    out = make("slice", {out},
               {{"dim", static_cast<std::int64_t>(i)},
                {"start", bound_of(call.dims(), (*starts)[i])},
                {"end", bound_of(call.dims(), (*ends)[i])},
                {"step", *step}});
  }
  return make.done(make("detach", {out}, {}, call.wanted));
}

}  // namespace pw::fx
