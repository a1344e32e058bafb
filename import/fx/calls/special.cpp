#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/type_text.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

// Returns the shape of a tensor, or nothing if the value is not a tensor or has no type.
std::optional<Shape> shape_of(Emitter& emitter, const Value* tensor) {
  const auto [value, type] = typed_tensor(emitter, tensor);
  return type ? std::optional(type->shape) : std::nullopt;
}

// Resolves a bound by Python's rules: omitted, counted from the end, beyond the end; the old count
// becomes the symbol. If the extent is a symbol, the order depends on the run: the smaller or the
// larger of the two. Invalid if it is not a number.
DimId slice_bound(Emitter& emitter, const Value& v, DimId size, DimId left_out, const Site& site) {
  Dims& dims = emitter.dims();
  if (v.kind == Value::Kind::none) return left_out;
  const std::optional<std::int64_t> i = as_int(emitter.dims(), v), count = dims.value(size),
                                    old = dims.value(emitter.symbols().to_old(size));
  if (!i) return v.kind == Value::Kind::integer ? v.dim : DimId();
  if (*i >= kMaxDim) return size;
  if (count) return dims.constant(std::clamp<std::int64_t>(*i < 0 ? *i + *count : *i, 0, *count));
  if (*i >= 0 && *i == old) {
    emitter.effects().note(fmt::format("{}: slice bound {} became {}, the extent of the axis",
                                       site.result.name, *i, dims.print(size)));
    return size;
  }
  const DimId at = *i < 0 ? dims.add(size, v.dim) : v.dim, end = *i < 0 ? dims.constant(0) : size;
  const Compare inside = *i < 0 ? Compare::ge : Compare::le;
  if (!at.valid() || dims.prove(inside, at, end, emitter.graph().facts) == Truth::yes) return at;
  if (dims.prove(inside, end, at, emitter.graph().facts) == Truth::yes) return end;
  emitter.effects().once();
  emitter.assumptions().add_threshold(size, std::abs(*i));
  return *i < 0 ? dims.max(at, end) : dims.min(at, end);
}

}  // namespace

// A cast, or nothing.
Applied convert_to_copy(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                        const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const Value* dtype = bound.find("dtype");
  if (!x || !dtype || (dtype->kind != Value::Kind::dtype && dtype->kind != Value::Kind::none))
    return kNotThis;
  if (dtype->kind == Value::Kind::none || (type && type->dtype == dtype->dtype))
    return some(emitter.emit(bound.mapping->copies ? "clone" : "detach", {*x}, {}, wanted, site));
  return cast(emitter, *x, dtype->dtype, wanted, site);
}

// Converts the variance of one axis from deviations, and that of several by convert_variance.
Applied convert_var_mean(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                         const Site& site) {
  Applied one_axis = convert_var_mean_of_axis(emitter, bound, wanted, site);
  return !one_axis || *one_axis ? one_axis : convert_variance(emitter, bound, wanted, site);
}

// A cast to the type of another tensor.
Applied convert_type_of(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                        const Site& site) {
  const auto [x, from] = typed_tensor(emitter, bound.find("self"));
  const Type* to = typed_tensor(emitter, bound.find("other")).type;
  if (!from || !to) return kNotThis;
  if (from->dtype == to->dtype) return some(emitter.emit("detach", {*x}, {}, wanted, site));
  return cast(emitter, *x, to->dtype, wanted, site);
}

Applied reshape_to(Emitter& emitter, ValueId x, Shape shape, const Outputs& wanted,
                   const Site& site) {
  return some(emitter.emit("reshape", {x}, {{"shape", std::move(shape)}}, wanted, site));
}

// Literals may become symbols.
Applied convert_view(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                     const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  if (!x) return kNotThis;
  const Value* given = bound.find("size") ? bound.find("size") : bound.find("shape");
  std::optional<Shape> literal = given ? as_shape(*given) : shape_of(emitter, bound.find("other"));
  if (!literal) return kNotThis;
  if (!type) return reshape_to(emitter, *x, *literal, wanted, site);
  Shape from = type->shape;
  std::optional<Shape> shape = emitter.symbols().fit_view(from, *literal);
  if (shape && *shape != *literal)
    emitter.effects().note(fmt::format("{}: reshape to {} became {}, because it views {}",
                                       site.result.name, emitter.context().types.print(*literal),
                                       emitter.context().types.print(*shape),
                                       emitter.context().types.print(from)));
  return reshape_to(emitter, *x, shape ? *shape : *literal, wanted, site);
}

Applied convert_flatten(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                        const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const auto first = axis_of(emitter, bound.find("start_dim"), type),
             last = axis_of(emitter, bound.find("end_dim"), type);
  if (!first || !last || *last < *first) return kNotThis;
  Shape shape = type->shape;
  for (std::size_t i = *first; i < *last; ++i) {
    shape[*first] = emitter.dims().mul(shape[*first], shape[*first + 1]);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*first) + 1);
  }
  return reshape_to(emitter, *x, shape, wanted, site);
}

Applied convert_unsqueeze(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                          const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  if (!type) return kNotThis;
  Shape shape = type->shape;
  const auto axis = axis_of(as_int(emitter.dims(), *bound.find("dim")), shape.size() + 1);
  if (!axis) return kNotThis;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), emitter.dims().constant(1));
  return reshape_to(emitter, *x, shape, wanted, site);
}

Applied convert_squeeze(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                        const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  if (!type) return kNotThis;
  const Shape& shape = type->shape;
  const Value& dims = *bound.find("dim");  // None: all of size 1
  std::optional<Shape> listed = as_shape(dims);
  if (!listed && dims.kind != Value::Kind::none) return kNotThis;
  std::vector<bool> chosen(shape.size(), !listed.has_value());
  for (DimId d : listed.value_or(Shape())) {
    std::optional<std::size_t> axis = axis_of(emitter.dims().value(d), shape.size());
    if (!axis) return kNotThis;
    chosen[*axis] = true;
  }
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!chosen[i] || emitter.dims().value(shape[i]) != 1) out.push_back(shape[i]);
  return reshape_to(emitter, *x, out, wanted, site);
}

// The vector itself, if it is one. `numpy_T` reverses all axes, `mT` exchanges the last two.
Applied convert_t(Emitter& emitter, const Bound& bound, const Outputs& wanted, const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  if (!type) return kNotThis;
  const std::size_t rank = type->shape.size();
  std::vector<std::size_t> to(rank);
  std::iota(to.begin(), to.end(), std::size_t{0});
  const bool all = bound.mapping->target == "aten.numpy_T",
             last = bound.mapping->target != "aten.t";
  if (rank > 2 ? !last : rank < 2 && last && !all) return kNotThis;
  std::reverse(rank > 2 && !all ? to.end() - 2 : to.begin(), to.end());
  return permuted(emitter, *x, to, wanted, site);
}

Applied convert_permute(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                        const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const std::optional<Shape> dims = as_shape(*bound.find("dims"));
  if (!type || !dims || dims->size() != type->shape.size()) return kNotThis;
  std::vector<std::size_t> to;
  for (DimId d : *dims) {
    const auto axis = axis_of(emitter.dims().value(d), dims->size());
    if (!axis || std::find(to.begin(), to.end(), *axis) != to.end()) return kNotThis;
    to.push_back(*axis);
  }
  return permuted(emitter, *x, to, wanted, site);
}

// A permutation is a chain of exchanges; the last one carries the name.
Applied permuted(Emitter& emitter, ValueId x, const std::vector<std::size_t>& to,
                 const Outputs& wanted, const Site& site) {
  const std::size_t rank = to.size();
  std::vector<std::pair<std::size_t, std::size_t>> swaps;
  std::vector<std::size_t> now(rank);
  std::iota(now.begin(), now.end(), std::size_t{0});
  for (std::size_t i = 0; i < rank; ++i) {
    auto j = static_cast<std::size_t>(std::find(now.begin(), now.end(), to[i]) - now.begin());
    if (j == i) continue;
    std::swap(now[i], now[j]);
    swaps.emplace_back(i, j);
  }
  if (swaps.empty()) return some(emitter.emit("detach", {x}, {}, wanted, site));
  for (std::size_t k = 0; k < swaps.size(); ++k) {
    NamedAttributes attributes = {{"dim0", static_cast<std::int64_t>(swaps[k].first)},
                                  {"dim1", static_cast<std::int64_t>(swaps[k].second)}};
    bool final = k + 1 == swaps.size();
    Result<Results> results =
        emitter.emit("transpose", {x}, std::move(attributes), final ? wanted : kUnnamed, site);
    if (!results || final) return some(std::move(results));
    x = results->front();
  }
  return kNotThis;
}

// Bounds become plain ones.
Applied convert_slice(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                      const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  std::optional<std::size_t> axis = axis_of(emitter, bound.find("dim"), type);
  if (!axis) return kNotThis;
  Dims& dims = emitter.dims();
  const DimId size = type->shape[*axis];
  const DimId start = slice_bound(emitter, *bound.find("start"), size, dims.constant(0), site),
              end = slice_bound(emitter, *bound.find("end"), size, size, site);
  if (!start.valid() || !end.valid()) return kNotThis;
  NamedAttributes attributes = {{"dim", static_cast<std::int64_t>(*axis)},
                                {"start", bound_of(dims, start)},
                                {"end", bound_of(dims, end)}};
  if (bound.mapping->op == "slice_scatter") {
    std::optional<ValueId> src = tensor_of(bound.find("src"));
    std::optional<std::int64_t> stride = as_int(emitter.dims(), *bound.find("step"));
    if (!src || !stride || *stride < 1) return kNotThis;
    if (*stride != 1)
      return strided_scatter(emitter, *x, *src, *axis, start, *stride, wanted, site);
    return some(emitter.emit("slice_scatter", {*x, *src}, std::move(attributes), wanted, site));
  }
  std::optional<std::int64_t> step = as_int(emitter.dims(), *bound.find("step"));
  if (!step || *step < 1) return kNotThis;
  attributes.emplace_back("step", *step);
  return some(emitter.emit("slice", {*x}, std::move(attributes), wanted, site));
}

Applied convert_select(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  std::optional<std::size_t> axis = axis_of(emitter, bound.find("dim"), type);
  std::optional<std::int64_t> index = as_int(emitter.dims(), *bound.find("index"));
  if (!axis || !index) return kNotThis;
  Shape shape = type->shape;
  Dims& dims = emitter.dims();
  const DimId size = shape[*axis], unit = dims.constant(1);
  const std::int64_t least = *index < 0 ? -*index : *index + 1;  // extent that has such an element
  if (dims.value(size).value_or(least) < least) return kNotThis;
  if (!dims.value(size) &&
      !emitter.assumptions().assume(Compare::ge, size, least, "an element of it is selected") &&
      *index < 0)
    return kNotThis;
  const DimId at = *index < 0 ? dims.sub(size, dims.constant(least)) : dims.constant(*index);
  const DimId end = at.valid() ? dims.add(at, unit) : at;
  if (!end.valid()) return kNotThis;
  NamedAttributes attributes = {{"dim", static_cast<std::int64_t>(*axis)},
                                {"start", bound_of(dims, at)},
                                {"end", bound_of(dims, end)}};
  Results part = PW_TRY(emitter.emit("slice", {*x}, std::move(attributes), kUnnamed, site));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  return reshape_to(emitter, part.front(), shape, wanted, site);
}

Applied convert_split(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                      const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  std::optional<std::size_t> axis = axis_of(emitter, bound.find("dim"), type);
  if (!axis) return kNotThis;
  const std::optional<std::int64_t> count = emitter.dims().value(type->shape[*axis]);
  const bool chunk = bound.find("chunks") != nullptr;
  std::optional<std::int64_t> given =
      as_int(emitter.dims(), *bound.find(chunk ? "chunks" : "split_size"));
  if (!count || !given || *given < 1) return kNotThis;
  std::int64_t size = chunk ? (*count + *given - 1) / *given : *given;
  constexpr std::int64_t kMaxParts = 4096;
  if (size < 1 || *count / size > kMaxParts) return kNotThis;
  Shape sizes;
  for (std::int64_t left = *count; left > 0; left -= size)
    sizes.push_back(emitter.dims().constant(std::min(size, left)));
  return some(emitter.emit("split", {*x},
                           {{"dim", static_cast<std::int64_t>(*axis)}, {"sizes", std::move(sizes)}},
                           wanted, site));
}

Applied convert_expand(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Value* given = bound.find("size");
  std::optional<Shape> shape = given ? as_shape(*given) : shape_of(emitter, bound.find("other"));
  if (!x || !shape) return kNotThis;
  if (const Type* type = emitter.type_of(*x); type && type->shape.size() <= shape->size()) {
    Shape before = *shape;
    std::size_t lead = shape->size() - type->shape.size();
    for (std::size_t i = 0; i < type->shape.size(); ++i) {
      DimId from = type->shape[i], &to = (*shape)[lead + i];
      if (emitter.dims().value(to) == -1) to = before[lead + i] = from;
      if (emitter.symbols().in(from) && emitter.symbols().to_old(from) == to) to = from;
    }
    if (*shape != before)
      emitter.effects().note(fmt::format("{}: expand to {} became {}", site.result.name,
                                         emitter.context().types.print(before),
                                         emitter.context().types.print(*shape)));
  }
  Applied out = some(emitter.emit("expand", {*x}, {{"shape", *shape}}, wanted, site));
  if (out && *out && !emitter.symbols().empty())
    emitter.effects().once(),
        emitter.effects().add_maker((*out)->front());  // its leading literals may be counts, too
  return out;
}

Applied convert_make(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                     const Site& site) {
  std::optional<Shape> shape;
  std::optional<DType> dtype;
  if (!bound.find("size")) {
    const auto [x, type] = typed_tensor(emitter, bound.find("self"));
    if (!type) return kNotThis;
    shape = type->shape;
    dtype = type->dtype;
  } else {
    shape = as_shape(*bound.find("size"));
    std::optional<ValueId> like = tensor_of(bound.find("self"));  // new_zeros and the like
    if (const Type* type = like ? emitter.type_of(*like) : nullptr) dtype = type->dtype;
  }
  const Value& given = *bound.find("dtype");
  if (given.kind == Value::Kind::dtype) dtype = given.dtype;
  if (!dtype && given.kind == Value::Kind::none) {
    const Value* fill = bound.find("fill_value");
    dtype = DType::f32;
    if (fill && fill->kind == Value::Kind::integer) dtype = DType::i64;
    if (fill && fill->kind == Value::Kind::boolean) dtype = DType::b8;
    if (!wanted.empty() && wanted[0].type != Types::unknown())
      dtype = emitter.context().types[wanted[0].type].dtype;
  }
  if (!shape || !dtype) return kNotThis;
  NamedAttributes attributes = {{"shape", *shape}, {"dtype", *dtype}};
  if (bound.mapping->op == "full") {
    std::optional<Attribute> value = fill_of(emitter.dims(), *bound.find("fill_value"), *dtype);
    if (!value) return kNotThis;
    attributes.emplace_back("value", std::move(*value));
  }
  Result<Results> made = emitter.emit(bound.mapping->op, {}, std::move(attributes), wanted, site);
  if (made) emitter.effects().add_maker(made->front());
  return some(std::move(made));
}

Applied cast(Emitter& emitter, ValueId x, DType dtype, const Outputs& wanted, const Site& site) {
  return some(emitter.emit("cast", {x}, {{"dtype", dtype}}, wanted, site));
}

// copy(destination, source) is the source, brought to the destination's type.
Applied convert_copy(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                     const Site& site) {
  std::optional<ValueId> to = tensor_of(bound.find("self")), from = tensor_of(bound.find("src"));
  const Type* wanted_type = to ? emitter.type_of(*to) : nullptr;
  const Type* given = from ? emitter.type_of(*from) : nullptr;
  if (!wanted_type || !given) return kNotThis;
  bool same_shape = given->shape == wanted_type->shape ||
                    (emitter.effects().is_maker(*to) && emitter.symbols().in(given->shape));
  Shape shape = wanted_type->shape;
  DType dtype = wanted_type->dtype;
  bool same_dtype = given->dtype == dtype;
  emitter.effects().drop(*to);
  if (same_shape && same_dtype) return some(emitter.emit("clone", {*from}, {}, wanted, site));
  if (same_shape) return cast(emitter, *from, dtype, wanted, site);
  if (!same_dtype) {
    Applied inner = cast(emitter, *from, dtype, kUnnamed, site);
    if (!inner) return inner;
    from = (*inner)->front();
  }
  return some(emitter.emit("expand", {*from}, {{"shape", std::move(shape)}}, wanted, site));
}

// Over several axes: one after the other, the last axis first, so that the others keep their
// numbers.
Applied convert_reduce(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  auto [x, type] = typed_tensor(emitter, bound.find("self"));
  if (!type) return kNotThis;
  std::size_t rank = type->shape.size();
  std::vector<std::size_t> axes;
  const Value* dim = bound.find("dim");
  std::optional<Shape> listed = dim ? as_shape(*dim) : std::nullopt;
  for (DimId d : listed.value_or(Shape())) {
    // A tensor of rank 0 counts as one of a single axis.
    std::optional<std::size_t> axis =
        axis_of(emitter.dims().value(d), std::max<std::size_t>(rank, 1));
    if (!axis) return kNotThis;
    if (rank > 0) axes.push_back(*axis);
  }
  if (axes.empty())
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(i);
  std::sort(axes.rbegin(), axes.rend());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  const Value* keep = bound.find("keepdim");
  bool keepdim = keep && keep->kind == Value::Kind::boolean && keep->boolean;
  const Value* dtype = bound.find("dtype");
  DType to = type->dtype;
  if (dtype && dtype->kind == Value::Kind::dtype) {
    to = dtype->dtype;
  } else if (bound.mapping->op == "sum" && !is_float(to) &&
             !bound.mapping->target.starts_with("prims.")) {
    to = DType::i64;
  }
  if (to != type->dtype) {
    Applied converted = cast(emitter, *x, to, kUnnamed, site);
    if (!converted) return converted;
    x = (*converted)->front();
  }
  if (axes.empty()) return some(emitter.emit("detach", {*x}, {}, wanted, site));  // rank 0
  // Sums and products of 16-bit floats over several axes round once, at the end.
  const bool half = to == DType::f16 || to == DType::bf16,
             extreme = bound.mapping->op == "amax" || bound.mapping->op == "amin",
             wide = half && !extreme && axes.size() > 1;
  if (wide) {
    Applied converted = cast(emitter, *x, DType::f32, kUnnamed, site);
    if (!converted) return converted;
    x = (*converted)->front();
  }
  for (std::size_t k = 0; k < axes.size(); ++k) {
    bool final = k + 1 == axes.size() && !wide;
    NamedAttributes attributes = {{"dim", static_cast<std::int64_t>(axes[k])},
                                  {"keepdim", keepdim}};
    Result<Results> results = emitter.emit(bound.mapping->op, {*x}, std::move(attributes),
                                           final ? wanted : kUnnamed, site);
    if (!results || final) return some(std::move(results));
    x = results->front();
  }
  return cast(emitter, *x, to, wanted, site);
}

}  // namespace pw::fx
