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
Applied convert_to_copy(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const Value* dtype = call.find("dtype");
  if (!x || !dtype || (dtype->kind != Value::Kind::dtype && dtype->kind != Value::Kind::none))
    return kNotThis;
  if (dtype->kind == Value::Kind::none || (type && type->dtype == dtype->dtype))
    return call.emit(call.bound.mapping->copies ? "clone" : "detach", {*x});
  return cast(call, *x, dtype->dtype);
}

// Converts the variance of one axis from deviations, and that of several by convert_variance.
Applied convert_var_mean(const KnownCall& call) {
  Applied one_axis = convert_var_mean_of_axis(call);
  return !one_axis || *one_axis ? one_axis : convert_variance(call);
}

// A cast to the type of another tensor.
Applied convert_type_of(const KnownCall& call) {
  const auto [x, from] = call.tensor("self");
  const Type* to = call.tensor("other").type;
  if (!from || !to) return kNotThis;
  if (from->dtype == to->dtype) return call.emit("detach", {*x});
  return cast(call, *x, to->dtype);
}

Applied reshape_to(const KnownCall& call, ValueId x, Shape shape) {
  return call.emit("reshape", {x}, {{"shape", std::move(shape)}});
}

// Literals may become symbols.
Applied convert_view(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  if (!x) return kNotThis;
  const Value* given = call.find("size") ? call.find("size") : call.find("shape");
  std::optional<Shape> literal =
      given ? as_shape(*given) : shape_of(call.emitter, call.find("other"));
  if (!literal) return kNotThis;
  if (!type) return reshape_to(call, *x, *literal);
  Shape from = type->shape;
  std::optional<Shape> shape = call.emitter.symbols().fit_view(from, *literal);
  if (shape && *shape != *literal)
    call.emitter.effects().note(fmt::format(
        "{}: reshape to {} became {}, because it views {}", call.site.result.name,
        call.emitter.context().types.print(*literal), call.emitter.context().types.print(*shape),
        call.emitter.context().types.print(from)));
  return reshape_to(call, *x, shape ? *shape : *literal);
}

Applied convert_flatten(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const auto first = call.axis("start_dim", type), last = call.axis("end_dim", type);
  if (!first || !last || *last < *first) return kNotThis;
  Shape shape = type->shape;
  for (std::size_t i = *first; i < *last; ++i) {
    shape[*first] = call.dims().mul(shape[*first], shape[*first + 1]);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*first) + 1);
  }
  return reshape_to(call, *x, shape);
}

Applied convert_unsqueeze(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  if (!type) return kNotThis;
  Shape shape = type->shape;
  const auto axis = axis_of(call.integer("dim"), shape.size() + 1);
  if (!axis) return kNotThis;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), call.dims().constant(1));
  return reshape_to(call, *x, shape);
}

Applied convert_squeeze(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  if (!type) return kNotThis;
  const Shape& shape = type->shape;
  const Value& dims = *call.find("dim");  // None: all of size 1
  std::optional<Shape> listed = as_shape(dims);
  if (!listed && dims.kind != Value::Kind::none) return kNotThis;
  std::vector<bool> chosen(shape.size(), !listed.has_value());
  for (DimId d : listed.value_or(Shape())) {
    std::optional<std::size_t> axis = axis_of(call.dims().value(d), shape.size());
    if (!axis) return kNotThis;
    chosen[*axis] = true;
  }
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!chosen[i] || call.dims().value(shape[i]) != 1) out.push_back(shape[i]);
  return reshape_to(call, *x, out);
}

// The vector itself, if it is one. `numpy_T` reverses all axes, `mT` exchanges the last two.
Applied convert_t(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  if (!type) return kNotThis;
  const std::size_t rank = type->shape.size();
  std::vector<std::size_t> to(rank);
  std::iota(to.begin(), to.end(), std::size_t{0});
  const bool all = call.bound.mapping->target == "aten.numpy_T",
             last = call.bound.mapping->target != "aten.t";
  if (rank > 2 ? !last : rank < 2 && last && !all) return kNotThis;
  std::reverse(rank > 2 && !all ? to.end() - 2 : to.begin(), to.end());
  return permuted(call, *x, to);
}

Applied convert_permute(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::optional<Shape> dims = as_shape(*call.find("dims"));
  if (!type || !dims || dims->size() != type->shape.size()) return kNotThis;
  std::vector<std::size_t> to;
  for (DimId d : *dims) {
    const auto axis = axis_of(call.dims().value(d), dims->size());
    if (!axis || std::ranges::find(to, *axis) != to.end()) return kNotThis;
    to.push_back(*axis);
  }
  return permuted(call, *x, to);
}

// A permutation is a chain of exchanges; the last one carries the name.
Applied permuted(const KnownCall& call, ValueId x, const std::vector<std::size_t>& to) {
  const std::size_t rank = to.size();
  std::vector<std::pair<std::size_t, std::size_t>> swaps;
  std::vector<std::size_t> now(rank);
  std::iota(now.begin(), now.end(), std::size_t{0});
  for (std::size_t i = 0; i < rank; ++i) {
    auto j = static_cast<std::size_t>(std::ranges::find(now, to[i]) - now.begin());
    if (j == i) continue;
    std::swap(now[i], now[j]);
    swaps.emplace_back(i, j);
  }
  if (swaps.empty()) return call.emit("detach", {x});
  for (std::size_t k = 0; k < swaps.size(); ++k) {
    NamedAttributes attributes = {{"dim0", static_cast<std::int64_t>(swaps[k].first)},
                                  {"dim1", static_cast<std::int64_t>(swaps[k].second)}};
    bool final = k + 1 == swaps.size();
    Applied results = (final ? call : call.unnamed()).emit("transpose", {x}, attributes);
    if (!results || final) return results;
    x = (*results)->front();
  }
  return kNotThis;
}

// Bounds become plain ones.
Applied convert_slice(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  std::optional<std::size_t> axis = call.axis("dim", type);
  if (!axis) return kNotThis;
  Dims& dims = call.dims();
  const DimId size = type->shape[*axis];
  const DimId start =
                  slice_bound(call.emitter, *call.find("start"), size, dims.constant(0), call.site),
              end = slice_bound(call.emitter, *call.find("end"), size, size, call.site);
  if (!start.valid() || !end.valid()) return kNotThis;
  NamedAttributes attributes = {{"dim", static_cast<std::int64_t>(*axis)},
                                {"start", bound_of(dims, start)},
                                {"end", bound_of(dims, end)}};
  if (call.bound.mapping->op == "slice_scatter") {
    std::optional<ValueId> src = tensor_of(call.find("src"));
    std::optional<std::int64_t> stride = call.integer("step");
    if (!src || !stride || *stride < 1) return kNotThis;
    if (*stride != 1) return strided_scatter(call, *x, *src, *axis, start, *stride);
    return call.emit("slice_scatter", {*x, *src}, attributes);
  }
  std::optional<std::int64_t> step = call.integer("step");
  if (!step || *step < 1) return kNotThis;
  attributes.emplace_back("step", *step);
  return call.emit("slice", {*x}, attributes);
}

Applied convert_select(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  std::optional<std::size_t> axis = call.axis("dim", type);
  std::optional<std::int64_t> index = call.integer("index");
  if (!axis || !index) return kNotThis;
  Shape shape = type->shape;
  Dims& dims = call.dims();
  const DimId size = shape[*axis], unit = dims.constant(1);
  const std::int64_t least = *index < 0 ? -*index : *index + 1;  // extent that has such an element
  if (dims.value(size).value_or(least) < least) return kNotThis;
  if (!dims.value(size) &&
      !call.emitter.assumptions().assume(Compare::ge, size, least,
                                         "an element of it is selected") &&
      *index < 0)
    return kNotThis;
  const DimId at = *index < 0 ? dims.sub(size, dims.constant(least)) : dims.constant(*index);
  const DimId end = at.valid() ? dims.add(at, unit) : at;
  if (!end.valid()) return kNotThis;
  NamedAttributes attributes = {{"dim", static_cast<std::int64_t>(*axis)},
                                {"start", bound_of(dims, at)},
                                {"end", bound_of(dims, end)}};
  const Applied part = call.unnamed().emit("slice", {*x}, attributes);
  if (!part) return part;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  return reshape_to(call, (*part)->front(), shape);
}

Applied convert_split(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  std::optional<std::size_t> axis = call.axis("dim", type);
  if (!axis) return kNotThis;
  const std::optional<std::int64_t> count = call.dims().value(type->shape[*axis]);
  const bool chunk = call.find("chunks") != nullptr;
  std::optional<std::int64_t> given =
      as_int(call.dims(), *call.find(chunk ? "chunks" : "split_size"));
  if (!count || !given || *given < 1) return kNotThis;
  std::int64_t size = chunk ? (*count + *given - 1) / *given : *given;
  constexpr std::int64_t kMaxParts = 4096;
  if (size < 1 || *count / size > kMaxParts) return kNotThis;
  Shape sizes;
  for (std::int64_t left = *count; left > 0; left -= size)
    sizes.push_back(call.dims().constant(std::min(size, left)));
  return call.emit("split", {*x},
                   {{"dim", static_cast<std::int64_t>(*axis)}, {"sizes", std::move(sizes)}});
}

Applied convert_expand(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self"));
  const Value* given = call.find("size");
  std::optional<Shape> shape =
      given ? as_shape(*given) : shape_of(call.emitter, call.find("other"));
  if (!x || !shape) return kNotThis;
  if (const Type* type = call.type_of(*x); type && type->shape.size() <= shape->size()) {
    Shape before = *shape;
    std::size_t lead = shape->size() - type->shape.size();
    for (std::size_t i = 0; i < type->shape.size(); ++i) {
      DimId from = type->shape[i], &to = (*shape)[lead + i];
      if (call.dims().value(to) == -1) to = before[lead + i] = from;
      if (call.emitter.symbols().in(from) && call.emitter.symbols().to_old(from) == to) to = from;
    }
    if (*shape != before)
      call.emitter.effects().note(fmt::format("{}: expand to {} became {}", call.site.result.name,
                                              call.emitter.context().types.print(before),
                                              call.emitter.context().types.print(*shape)));
  }
  Applied out = call.emit("expand", {*x}, {{"shape", *shape}});
  if (out && *out && !call.emitter.symbols().empty())
    call.emitter.effects().once(),
        call.emitter.effects().add_maker(
            (*out)->front());  // its leading literals may be counts, too
  return out;
}

Applied convert_make(const KnownCall& call) {
  std::optional<Shape> shape;
  std::optional<DType> dtype;
  if (!call.find("size")) {
    const auto [x, type] = call.tensor("self");
    if (!type) return kNotThis;
    shape = type->shape;
    dtype = type->dtype;
  } else {
    shape = as_shape(*call.find("size"));
    std::optional<ValueId> like = tensor_of(call.find("self"));  // new_zeros and the like
    if (const Type* type = like ? call.type_of(*like) : nullptr) dtype = type->dtype;
  }
  const Value& given = *call.find("dtype");
  if (given.kind == Value::Kind::dtype) dtype = given.dtype;
  if (!dtype && given.kind == Value::Kind::none) {
    const Value* fill = call.find("fill_value");
    dtype = DType::f32;
    if (fill && fill->kind == Value::Kind::integer) dtype = DType::i64;
    if (fill && fill->kind == Value::Kind::boolean) dtype = DType::b8;
    if (!call.wanted.empty() && call.wanted[0].type != Types::unknown())
      dtype = call.emitter.context().types[call.wanted[0].type].dtype;
  }
  if (!shape || !dtype) return kNotThis;
  NamedAttributes attributes = {{"shape", *shape}, {"dtype", *dtype}};
  if (call.bound.mapping->op == "full") {
    std::optional<Attribute> value = fill_of(call.dims(), *call.find("fill_value"), *dtype);
    if (!value) return kNotThis;
    attributes.emplace_back("value", std::move(*value));
  }
  Applied made = call.emit(call.bound.mapping->op, {}, attributes);
  if (made) call.emitter.effects().add_maker((*made)->front());
  return made;
}

Applied cast(const KnownCall& call, ValueId x, DType dtype) {
  return call.emit("cast", {x}, {{"dtype", dtype}});
}

// copy(destination, source) is the source, brought to the destination's type.
Applied convert_copy(const KnownCall& call) {
  std::optional<ValueId> to = tensor_of(call.find("self")), from = tensor_of(call.find("src"));
  const Type* wanted_type = to ? call.type_of(*to) : nullptr;
  const Type* given = from ? call.type_of(*from) : nullptr;
  if (!wanted_type || !given) return kNotThis;
  bool same_shape = given->shape == wanted_type->shape || (call.emitter.effects().is_maker(*to) &&
                                                           call.emitter.symbols().in(given->shape));
  Shape shape = wanted_type->shape;
  DType dtype = wanted_type->dtype;
  bool same_dtype = given->dtype == dtype;
  call.emitter.effects().drop(*to);
  if (same_shape && same_dtype) return call.emit("clone", {*from});
  if (same_shape) return cast(call, *from, dtype);
  if (!same_dtype) {
    Applied inner = cast(call.unnamed(), *from, dtype);
    if (!inner) return inner;
    from = (*inner)->front();
  }
  return call.emit("expand", {*from}, {{"shape", std::move(shape)}});
}

// Over several axes: one after the other, the last axis first, so that the others keep their
// numbers.
Applied convert_reduce(const KnownCall& call) {
  auto [x, type] = call.tensor("self");
  if (!type) return kNotThis;
  std::size_t rank = type->shape.size();
  std::vector<std::size_t> axes;
  const Value* dim = call.find("dim");
  std::optional<Shape> listed = dim ? as_shape(*dim) : std::nullopt;
  for (DimId d : listed.value_or(Shape())) {
    // A tensor of rank 0 counts as one of a single axis.
    std::optional<std::size_t> axis = axis_of(call.dims().value(d), std::max<std::size_t>(rank, 1));
    if (!axis) return kNotThis;
    if (rank > 0) axes.push_back(*axis);
  }
  if (axes.empty())
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(i);
  std::sort(axes.rbegin(), axes.rend());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  const Value* keep = call.find("keepdim");
  bool keepdim = keep && keep->kind == Value::Kind::boolean && keep->boolean;
  const Value* dtype = call.find("dtype");
  DType to = type->dtype;
  if (dtype && dtype->kind == Value::Kind::dtype) {
    to = dtype->dtype;
  } else if (call.bound.mapping->op == "sum" && !is_float(to) &&
             !call.bound.mapping->target.starts_with("prims.")) {
    to = DType::i64;
  }
  if (to != type->dtype) {
    Applied converted = cast(call.unnamed(), *x, to);
    if (!converted) return converted;
    x = (*converted)->front();
  }
  if (axes.empty()) return call.emit("detach", {*x});  // rank 0
  // Sums and products of 16-bit floats over several axes round once, at the end.
  const bool half = to == DType::f16 || to == DType::bf16,
             extreme = call.bound.mapping->op == "amax" || call.bound.mapping->op == "amin",
             wide = half && !extreme && axes.size() > 1;
  if (wide) {
    Applied converted = cast(call.unnamed(), *x, DType::f32);
    if (!converted) return converted;
    x = (*converted)->front();
  }
  for (std::size_t k = 0; k < axes.size(); ++k) {
    bool final = k + 1 == axes.size() && !wide;
    NamedAttributes attributes = {{"dim", static_cast<std::int64_t>(axes[k])},
                                  {"keepdim", keepdim}};
    Applied results =
        (final ? call : call.unnamed()).emit(call.bound.mapping->op, {*x}, attributes);
    if (!results || final) return results;
    x = (*results)->front();
  }
  return cast(call, *x, to);
}

}  // namespace pw::fx
