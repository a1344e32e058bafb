#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"
#include "import/fx/emit/put_back.hpp"

namespace pw::fx {
namespace {

// Every stride-th element replaced.
Applied strided_scatter(Emitter& emitter, ValueId x, ValueId src, std::size_t axis, DimId start,
                        std::int64_t stride, const Outputs& wanted, const Site& site) {
  const Type* part = emitter.type_of(src);
  if (!part || part->shape.size() <= axis || !emitter.type_of(x)) return kNotThis;
  ValueId whole = PW_TRY(
      put_back_strided(emitter, x, src, static_cast<std::int64_t>(axis), start, stride, site));
  return some(emitter.emit("clone", {whole}, {}, wanted, site));
}

}  // namespace

// narrow(x, dim, start, length) is the slice from `start` on.
Applied convert_narrow(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Value *dim = bound.find("dim"), *start = bound.find("start"),
              *length = bound.find("length");
  const Type* type = x ? emitter.type_of(*x) : nullptr;
  if (!type || !dim || !start || !length) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(emitter.dims(), *dim), type->shape.size());
  if (!axis || start->kind != Value::Kind::integer || length->kind != Value::Kind::integer)
    return kNotThis;
  DimId from = start->dim;
  if (std::optional<std::int64_t> v = emitter.dims().value(from); v && *v < 0)
    from = emitter.dims().add(type->shape[*axis], from);
  DimId to = from.valid() ? emitter.dims().add(from, length->dim) : from;
  if (!to.valid()) return kNotThis;
  return some(emitter.emit("slice", {*x},
                           {{"dim", static_cast<std::int64_t>(*axis)},
                            {"start", bound_of(emitter.dims(), from)},
                            {"end", bound_of(emitter.dims(), to)},
                            {"step", std::int64_t{1}}},
                           wanted, site));
}

// One index of an axis replaced: a slice of one element.
Applied convert_select_scatter(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                               const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self")), src = tensor_of(bound.find("src"));
  const Value *dim = bound.find("dim"), *index = bound.find("index");
  const Type *type = x ? emitter.type_of(*x) : nullptr,
             *part = src ? emitter.type_of(*src) : nullptr;
  if (!type || !part || !dim || !index) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(emitter.dims(), *dim), type->shape.size());
  std::optional<std::int64_t> at = as_int(emitter.dims(), *index);
  std::optional<std::int64_t> count =
      axis ? emitter.dims().value(type->shape[*axis]) : std::nullopt;
  if (!axis || !at || (*at < 0 && !count) || part->shape.size() + 1 != type->shape.size())
    return kNotThis;
  std::int64_t first = *at < 0 ? *at + *count : *at;
  if (first < 0 || (count && first >= *count)) return kNotThis;
  Shape shape = part->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), emitter.dims().constant(1));
  Applied wide = reshape_to(emitter, *src, std::move(shape), kUnnamed, site);
  if (!wide || !*wide) return wide;
  return some(emitter.emit(
      "slice_scatter", {*x, (*wide)->front()},
      {{"dim", static_cast<std::int64_t>(*axis)}, {"start", first}, {"end", first + 1}}, wanted,
      site));
}

}  // namespace pw::fx
