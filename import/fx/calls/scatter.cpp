#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"
#include "import/fx/emit/put_back.hpp"

namespace pw::fx {

// Every stride-th element replaced.
Applied strided_scatter(const KnownCall& call, ValueId x, ValueId src, std::size_t axis,
                        DimId start, std::int64_t stride) {
  const Type* part = call.type_of(src);
  if (!part || part->shape.size() <= axis || !call.type_of(x)) return kNotThis;
  ValueId whole = PW_TRY(put_back_strided(call.emitter, x, src, static_cast<std::int64_t>(axis),
                                          start, stride, call.site));
  return call.emit("clone", {whole});
}

// narrow(x, dim, start, length) is the slice from `start` on.
Applied convert_narrow(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self"));
  const Value *dim = call.find("dim"), *start = call.find("start"), *length = call.find("length");
  const Type* type = x ? call.type_of(*x) : nullptr;
  if (!type || !dim || !start || !length) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(call.dims(), *dim), type->shape.size());
  if (!axis || start->kind != Value::Kind::integer || length->kind != Value::Kind::integer)
    return kNotThis;
  DimId from = start->dim;
  if (std::optional<std::int64_t> v = call.dims().value(from); v && *v < 0)
    from = call.dims().add(type->shape[*axis], from);
  DimId to = from.valid() ? call.dims().add(from, length->dim) : from;
  if (!to.valid()) return kNotThis;
  return call.emit("slice", {*x},
                   {{"dim", static_cast<std::int64_t>(*axis)},
                    {"start", bound_of(call.dims(), from)},
                    {"end", bound_of(call.dims(), to)},
                    {"step", std::int64_t{1}}});
}

// One index of an axis replaced: a slice of one element.
Applied convert_select_scatter(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self")), src = tensor_of(call.find("src"));
  const Value *dim = call.find("dim"), *index = call.find("index");
  const Type *type = x ? call.type_of(*x) : nullptr, *part = src ? call.type_of(*src) : nullptr;
  if (!type || !part || !dim || !index) return kNotThis;
  std::optional<std::size_t> axis = axis_of(as_int(call.dims(), *dim), type->shape.size());
  std::optional<std::int64_t> at = as_int(call.dims(), *index);
  std::optional<std::int64_t> count = axis ? call.dims().value(type->shape[*axis]) : std::nullopt;
  if (!axis || !at || (*at < 0 && !count) || part->shape.size() + 1 != type->shape.size())
    return kNotThis;
  std::int64_t first = *at < 0 ? *at + *count : *at;
  if (first < 0 || (count && first >= *count)) return kNotThis;
  Shape shape = part->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), call.dims().constant(1));
  Applied wide = reshape_to(call.unnamed(), *src, std::move(shape));
  if (!wide || !*wide) return wide;
  return call.emit(
      "slice_scatter", {*x, (*wide)->front()},
      {{"dim", static_cast<std::int64_t>(*axis)}, {"start", first}, {"end", first + 1}});
}

}  // namespace pw::fx
