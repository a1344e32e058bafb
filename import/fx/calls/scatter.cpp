#include "base/try.hpp"
#include "import/fx/apply.hpp"

namespace pw::fx {
// narrow(x, dim, start, length) is the slice from `start` on.
Applied Converter::narrow(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Value *dim = bound.find("dim"), *start = bound.find("start"),
              *length = bound.find("length");
  const Type* type = x ? type_of(*x) : nullptr;
  if (!type || !dim || !start || !length) return kNotThis;
  std::optional<std::size_t> axis = axis_in(as_int(*dim), type->shape.size());
  if (!axis || start->kind != Value::Kind::integer || length->kind != Value::Kind::integer)
    return kNotThis;
  DimId from = start->dim;
  if (std::optional<std::int64_t> v = context_.dims.value(from); v && *v < 0)
    from = context_.dims.add(type->shape[*axis], from);
  DimId to = from.valid() ? context_.dims.add(from, length->dim) : from;
  if (!to.valid()) return kNotThis;
  return some(emit("slice", {*x},
                   {{key("dim"), static_cast<std::int64_t>(*axis)},
                    {key("start"), bound_of(context_.dims, from)},
                    {key("end"), bound_of(context_.dims, to)},
                    {key("step"), std::int64_t{1}}},
                   wanted, site));
}

// Every stride-th element replaced.
Applied Converter::strided_scatter(ValueId x, ValueId src, std::size_t axis, DimId start,
                                   std::int64_t stride, const std::vector<Wanted>& wanted,
                                   const Site& site) {
  const Type* part = type_of(src);
  if (!part || part->shape.size() <= axis || !type_of(x)) return kNotThis;
  ValueId whole =
      PW_TRY(put_back_strided(x, src, static_cast<std::int64_t>(axis), start, stride, site));
  return some(emit("clone", {whole}, {}, wanted, site));
}

// One index of an axis replaced: a slice of one element.
Applied Converter::select_scatter(const Bound& bound, const std::vector<Wanted>& wanted,
                                  const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self")), src = tensor_of(bound.find("src"));
  const Value *dim = bound.find("dim"), *index = bound.find("index");
  const Type *type = x ? type_of(*x) : nullptr, *part = src ? type_of(*src) : nullptr;
  if (!type || !part || !dim || !index) return kNotThis;
  std::optional<std::size_t> axis = axis_in(as_int(*dim), type->shape.size());
  std::optional<std::int64_t> at = as_int(*index);
  std::optional<std::int64_t> count = axis ? context_.dims.value(type->shape[*axis]) : std::nullopt;
  if (!axis || !at || (*at < 0 && !count) || part->shape.size() + 1 != type->shape.size())
    return kNotThis;
  std::int64_t first = *at < 0 ? *at + *count : *at;
  if (first < 0 || (count && first >= *count)) return kNotThis;
  Shape shape = part->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), context_.dims.constant(1));
  Applied wide = reshape_to(*src, std::move(shape), kUnnamed, site);
  if (!wide || !*wide) return wide;
  return some(emit("slice_scatter", {*x, (*wide)->front()},
                   {{key("dim"), static_cast<std::int64_t>(*axis)},
                    {key("start"), first},
                    {key("end"), first + 1}},
                   wanted, site));
}

std::optional<std::size_t> Converter::axis_in(std::optional<std::int64_t> given, std::size_t rank) {
  auto r = static_cast<std::int64_t>(rank);
  if (!given || *given < -r || *given >= r) return std::nullopt;
  return static_cast<std::size_t>(*given < 0 ? *given + r : *given);
}

}  // namespace pw::fx
