#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/type_text.hpp"
#include "import/fx/apply.hpp"

namespace pw::fx {
Applied Converter::apply_special(const Bound& bound, const std::vector<Wanted>& wanted,
                                 const Site& site) {
  switch (bound.mapping->special) {
    case Special::view:
    case Special::flatten:
    case Special::unsqueeze:
    case Special::squeeze: return view(bound, wanted, site);
    case Special::t:
    case Special::permute: return permute(bound, wanted, site);
    case Special::slice: return slice(bound, wanted, site);
    case Special::select: return select(bound, wanted, site);
    case Special::split:
    case Special::chunk: return split(bound, wanted, site);
    case Special::expand: return expand(bound, wanted, site);
    case Special::make:
    case Special::make_like: return make(bound, wanted, site);
    case Special::to_copy: {
      std::optional<ValueId> x = tensor_of(bound.find("self"));
      const Value* dtype = bound.find("dtype");
      const Type* type = x ? type_of(*x) : nullptr;
      if (!x || !dtype || (dtype->kind != Value::Kind::dtype && dtype->kind != Value::Kind::none))
        return kNotThis;
      if (dtype->kind == Value::Kind::none || (type && type->dtype == dtype->dtype))
        return some(emit(bound.mapping->copies ? "clone" : "detach", {*x}, {}, wanted, site));
      return some(emit("cast", {*x}, {{key("dtype"), dtype->dtype}}, wanted, site));
    }
    case Special::copy: return copy(bound, wanted, site);
    case Special::reduce: return reduce(bound, wanted, site);
    case Special::cat: return cat(bound, wanted, site);
    case Special::stack: return stack(bound, wanted, site);
    case Special::unbind: return unbind(bound, wanted, site);
    case Special::narrow: return narrow(bound, wanted, site);
    case Special::select_scatter: return select_scatter(bound, wanted, site);
    case Special::scalar: return scalar(bound, wanted, site);
    case Special::type_of: {
      std::optional<ValueId> x = tensor_of(bound.find("self")), y = tensor_of(bound.find("other"));
      const Type *from = x ? type_of(*x) : nullptr, *to = y ? type_of(*y) : nullptr;
      if (!from || !to) return kNotThis;
      if (from->dtype == to->dtype) return some(emit("detach", {*x}, {}, wanted, site));
      return cast(*x, to->dtype, wanted, site);
    }
    case Special::var_mean:
      if (Applied one_axis = var_mean(bound, wanted, site); !one_axis || *one_axis) return one_axis;
      return variance(bound, wanted, site);
    case Special::index: return index(bound, wanted, site);
    case Special::index_put: return index_put(bound, wanted, site);
    case Special::gather: return gather(bound, wanted, site);
    case Special::scatter: return scatter(bound, wanted, site);
    case Special::flip: return flip(bound, wanted, site);
    case Special::convolution: return convolution(bound, wanted, site);
    case Special::arange: return arange(bound, wanted, site);
    case Special::repeat: return repeat(bound, wanted, site);
    case Special::pad: return pad(bound, wanted, site);
    case Special::pad_edges: return pad_edges(bound, wanted, site);
    case Special::roll: return roll(bound, wanted, site);
    case Special::conv_transpose: return conv_transpose(bound, wanted, site);
    case Special::matmul: return matmul(bound, wanted, site);
    case Special::repeat_interleave: return repeat_interleave(bound, wanted, site);
    case Special::unflatten: return unflatten(bound, wanted, site);
    case Special::im2col: return im2col(bound, wanted, site);
    case Special::diagonal: return diagonal(bound, wanted, site);
    case Special::diagonal_scatter: return diagonal_scatter(bound, wanted, site);
    case Special::movedim: return movedim(bound, wanted, site);
    case Special::broadcast: return broadcast(bound, wanted, site);
    case Special::meshgrid: return meshgrid(bound, wanted, site);
    case Special::unfold: return unfold(bound, wanted, site);
    case Special::as_strided: return as_strided(bound, wanted, site);
    case Special::einsum: return einsum(bound, wanted, site);
    case Special::tensordot: return tensordot(bound, wanted, site);
    case Special::vector_norm: return vector_norm(bound, wanted, site);
    case Special::iota: return iota(bound, wanted, site);
    case Special::expand_dims: return expand_dims(bound, wanted, site);
    case Special::split_dim: return split_dim(bound, wanted, site);
    case Special::broadcast_in_dim: return broadcast_in_dim(bound, wanted, site);
    case Special::slices: return slices(bound, wanted, site);
    case Special::any: return any_of_axes(bound, wanted, site);
    case Special::variance: return variance(bound, wanted, site);
    case Special::ir_norm: return ir_norm(bound, wanted, site);
    case Special::rotary: return rotary(bound, wanted, site);
    case Special::attention: return attention(bound, wanted, site);
    case Special::scaled_product: return scaled_product(bound, wanted, site);
    case Special::shard_rows: return shard_rows(bound, wanted, site);
    case Special::foreign: return foreign(bound, wanted, site);
    case Special::size:
    case Special::none: return kNotThis;
  }
  return kNotThis;
}

Applied Converter::reshape_to(ValueId x, Shape shape, const std::vector<Wanted>& wanted,
                              const Site& site) {
  return some(emit("reshape", {x}, {{key("shape"), std::move(shape)}}, wanted, site));
}

// Returns the shape of a tensor, or nothing if the value is not a tensor or has no type.
std::optional<Shape> Converter::shape_of(const Value* tensor) const {
  const std::optional<ValueId> value = tensor_of(tensor);
  const Type* type = value ? type_of(*value) : nullptr;
  return type ? std::optional(type->shape) : std::nullopt;
}

Applied Converter::view(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  if (!x) return kNotThis;
  const Type* type = type_of(*x);
  Special special = bound.mapping->special;
  if (special == Special::view) {
    const Value* given = bound.find("size") ? bound.find("size") : bound.find("shape");
    std::optional<Shape> literal = given ? as_shape(*given) : shape_of(bound.find("other"));
    if (!literal) return kNotThis;
    if (!type) return reshape_to(*x, *literal, wanted, site);
    Shape from = type->shape;
    std::optional<Shape> shape = symbols_.fit_view(from, *literal);
    if (shape && *shape != *literal)
      note(fmt::format("{}: reshape to {} became {}, because it views {}", site.result.name,
                       context_.types.print(*literal), context_.types.print(*shape),
                       context_.types.print(from)));
    return reshape_to(*x, shape ? *shape : *literal, wanted, site);
  }
  if (!type) return kNotThis;
  Shape shape = type->shape;
  if (special == Special::flatten) {
    std::optional<std::size_t> first = axis_of(as_int(*bound.find("start_dim")), shape.size()),
                               last = axis_of(as_int(*bound.find("end_dim")), shape.size());
    if (!first || !last || *last < *first) return kNotThis;
    for (std::size_t i = *first; i < *last; ++i) {
      shape[*first] = context_.dims.mul(shape[*first], shape[*first + 1]);
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*first) + 1);
    }
    return reshape_to(*x, shape, wanted, site);
  }
  if (special == Special::unsqueeze) {
    std::optional<std::size_t> axis = axis_of(as_int(*bound.find("dim")), shape.size() + 1);
    if (!axis) return kNotThis;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), context_.dims.constant(1));
    return reshape_to(*x, shape, wanted, site);
  }
  const Value& dims = *bound.find("dim");  // None: all of size 1
  std::optional<Shape> listed = as_shape(dims);
  if (!listed && dims.kind != Value::Kind::none) return kNotThis;
  std::vector<bool> chosen(shape.size(), !listed.has_value());
  for (DimId d : listed.value_or(Shape())) {
    std::optional<std::size_t> axis = axis_of(context_.dims.value(d), shape.size());
    if (!axis) return kNotThis;
    chosen[*axis] = true;
  }
  Shape out;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!chosen[i] || context_.dims.value(shape[i]) != 1) out.push_back(shape[i]);
  return reshape_to(*x, out, wanted, site);
}

// A permutation is a chain of exchanges; the last one carries the name. `t` of a vector is the
// vector.
Applied Converter::permute(const Bound& bound, const std::vector<Wanted>& wanted,
                           const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  if (!type) return kNotThis;
  std::size_t rank = type->shape.size();
  std::vector<std::size_t> to(rank);
  for (std::size_t i = 0; i < rank; ++i) to[i] = i;
  if (bound.mapping->special == Special::t) {
    // `numpy_T` reverses all axes, `mT` exchanges the last two.
    const bool all = bound.mapping->target == "aten.numpy_T",
               last = bound.mapping->target != "aten.t";
    if (rank > 2 && !last) return kNotThis;
    if (rank < 2 && last && !all) return kNotThis;
    std::reverse(rank > 2 && !all ? to.end() - 2 : to.begin(), to.end());
  } else {
    std::optional<Shape> dims = as_shape(*bound.find("dims"));
    if (!dims || dims->size() != rank) return kNotThis;
    std::vector<bool> seen(rank, false);
    for (std::size_t i = 0; i < rank; ++i) {
      std::optional<std::size_t> axis = axis_of(context_.dims.value((*dims)[i]), rank);
      if (!axis || seen[*axis]) return kNotThis;
      seen[*axis] = true;
      to[i] = *axis;
    }
  }
  return permuted(*x, to, wanted, site);
}

// Axis to[i] as axis i.
Applied Converter::permuted(ValueId x, const std::vector<std::size_t>& to,
                            const std::vector<Wanted>& wanted, const Site& site) {
  const std::size_t rank = to.size();
  std::vector<std::pair<std::size_t, std::size_t>> swaps;
  std::vector<std::size_t> now(rank);
  for (std::size_t i = 0; i < rank; ++i) now[i] = i;
  for (std::size_t i = 0; i < rank; ++i) {
    auto j = static_cast<std::size_t>(std::find(now.begin(), now.end(), to[i]) - now.begin());
    if (j == i) continue;
    std::swap(now[i], now[j]);
    swaps.emplace_back(i, j);
  }
  if (swaps.empty()) return some(emit("detach", {x}, {}, wanted, site));
  for (std::size_t k = 0; k < swaps.size(); ++k) {
    AttributeList attributes = {{key("dim0"), static_cast<std::int64_t>(swaps[k].first)},
                                {key("dim1"), static_cast<std::int64_t>(swaps[k].second)}};
    bool final = k + 1 == swaps.size();
    Result<Results> results =
        emit("transpose", {x}, std::move(attributes), final ? wanted : kUnnamed, site);
    if (!results || final) return some(std::move(results));
    x = results->front();
  }
  return kNotThis;
}

// Resolves a bound by Python's rules: omitted, counted from the end, beyond the end; the old count
// becomes the symbol. If the extent is a symbol, the order depends on the run: the smaller or the
// larger of the two. Invalid if it is not a number.
DimId Converter::slice_bound(const Value& v, DimId size, DimId left_out, const Site& site) {
  Dims& dims = context_.dims;
  if (v.kind == Value::Kind::none) return left_out;
  const std::optional<std::int64_t> i = as_int(v), count = dims.value(size),
                                    old = dims.value(symbols_.to_old(size));
  if (!i) return v.kind == Value::Kind::integer ? v.dim : DimId();
  if (*i >= kMaxDim) return size;
  if (count) return dims.constant(std::clamp<std::int64_t>(*i < 0 ? *i + *count : *i, 0, *count));
  if (*i >= 0 && *i == old) {
    note(fmt::format("{}: slice bound {} became {}, the extent of the axis", site.result.name, *i,
                     dims.print(size)));
    return size;
  }
  const DimId at = *i < 0 ? dims.add(size, v.dim) : v.dim, end = *i < 0 ? dims.constant(0) : size;
  const Compare inside = *i < 0 ? Compare::ge : Compare::le;
  if (!at.valid() || dims.prove(inside, at, end, graph_.facts) == Truth::yes) return at;
  if (dims.prove(inside, end, at, graph_.facts) == Truth::yes) return end;
  once();
  thresholds_.emplace_back(size, std::abs(*i));
  return *i < 0 ? dims.max(at, end) : dims.min(at, end);
}

// Bounds become plain ones.
Applied Converter::slice(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  std::optional<std::size_t> axis =
      type ? axis_of(as_int(*bound.find("dim")), type->shape.size()) : std::nullopt;
  if (!axis) return kNotThis;
  Dims& dims = context_.dims;
  const DimId size = type->shape[*axis];
  const DimId start = slice_bound(*bound.find("start"), size, dims.constant(0), site),
              end = slice_bound(*bound.find("end"), size, size, site);
  if (!start.valid() || !end.valid()) return kNotThis;
  AttributeList attributes = {{key("dim"), static_cast<std::int64_t>(*axis)},
                              {key("start"), bound_of(dims, start)},
                              {key("end"), bound_of(dims, end)}};
  if (bound.mapping->op == "slice_scatter") {
    std::optional<ValueId> src = tensor_of(bound.find("src"));
    std::optional<std::int64_t> stride = as_int(*bound.find("step"));
    if (!src || !stride || *stride < 1) return kNotThis;
    if (*stride != 1) return strided_scatter(*x, *src, *axis, start, *stride, wanted, site);
    return some(emit("slice_scatter", {*x, *src}, std::move(attributes), wanted, site));
  }
  std::optional<std::int64_t> step = as_int(*bound.find("step"));
  if (!step || *step < 1) return kNotThis;
  attributes.emplace_back(key("step"), *step);
  return some(emit("slice", {*x}, std::move(attributes), wanted, site));
}

Applied Converter::select(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  std::optional<std::size_t> axis =
      type ? axis_of(as_int(*bound.find("dim")), type->shape.size()) : std::nullopt;
  std::optional<std::int64_t> index = as_int(*bound.find("index"));
  if (!axis || !index) return kNotThis;
  Shape shape = type->shape;
  Dims& dims = context_.dims;
  const DimId size = shape[*axis], unit = dims.constant(1);
  const std::int64_t least = *index < 0 ? -*index : *index + 1;  // extent that has such an element
  if (dims.value(size).value_or(least) < least) return kNotThis;
  if (!dims.value(size) && !assume(Compare::ge, size, least, "an element of it is selected") &&
      *index < 0)
    return kNotThis;
  const DimId at = *index < 0 ? dims.sub(size, dims.constant(least)) : dims.constant(*index);
  const DimId end = at.valid() ? dims.add(at, unit) : at;
  if (!end.valid()) return kNotThis;
  AttributeList attributes = {{key("dim"), static_cast<std::int64_t>(*axis)},
                              {key("start"), bound_of(dims, at)},
                              {key("end"), bound_of(dims, end)}};
  Results part = PW_TRY(emit("slice", {*x}, std::move(attributes), kUnnamed, site));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  return reshape_to(part.front(), shape, wanted, site);
}

Applied Converter::split(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  std::optional<std::size_t> axis =
      type ? axis_of(as_int(*bound.find("dim")), type->shape.size()) : std::nullopt;
  std::optional<std::int64_t> count = axis ? context_.dims.value(type->shape[*axis]) : std::nullopt;
  bool chunk = bound.mapping->special == Special::chunk;
  std::optional<std::int64_t> given = as_int(*bound.find(chunk ? "chunks" : "split_size"));
  if (!count || !given || *given < 1) return kNotThis;
  std::int64_t size = chunk ? (*count + *given - 1) / *given : *given;
  constexpr std::int64_t kMaxParts = 4096;
  if (size < 1 || *count / size > kMaxParts) return kNotThis;
  Shape sizes;
  for (std::int64_t left = *count; left > 0; left -= size)
    sizes.push_back(context_.dims.constant(std::min(size, left)));
  return some(
      emit("split", {*x},
           {{key("dim"), static_cast<std::int64_t>(*axis)}, {key("sizes"), std::move(sizes)}},
           wanted, site));
}

Applied Converter::expand(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Value* given = bound.find("size");
  std::optional<Shape> shape = given ? as_shape(*given) : shape_of(bound.find("other"));
  if (!x || !shape) return kNotThis;
  if (const Type* type = type_of(*x); type && type->shape.size() <= shape->size()) {
    Shape before = *shape;
    std::size_t lead = shape->size() - type->shape.size();
    for (std::size_t i = 0; i < type->shape.size(); ++i) {
      DimId from = type->shape[i], &to = (*shape)[lead + i];
      if (context_.dims.value(to) == -1) to = before[lead + i] = from;
      if (symbols_.in(from) && symbols_.to_old(from) == to) to = from;
    }
    if (*shape != before)
      note(fmt::format("{}: expand to {} became {}", site.result.name, context_.types.print(before),
                       context_.types.print(*shape)));
  }
  Applied out = some(emit("expand", {*x}, {{key("shape"), *shape}}, wanted, site));
  if (out && *out && !symbols_.empty())
    once(), makers_.insert((*out)->front());  // its leading literals may be counts, too
  return out;
}

Applied Converter::make(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<Shape> shape;
  std::optional<DType> dtype;
  if (bound.mapping->special == Special::make_like) {
    std::optional<ValueId> x = tensor_of(bound.find("self"));
    const Type* type = x ? type_of(*x) : nullptr;
    if (!type) return kNotThis;
    shape = type->shape;
    dtype = type->dtype;
  } else {
    shape = as_shape(*bound.find("size"));
    std::optional<ValueId> like = tensor_of(bound.find("self"));  // new_zeros and the like
    if (const Type* type = like ? type_of(*like) : nullptr) dtype = type->dtype;
  }
  const Value& given = *bound.find("dtype");
  if (given.kind == Value::Kind::dtype) dtype = given.dtype;
  if (!dtype && given.kind == Value::Kind::none) {
    const Value* fill = bound.find("fill_value");
    dtype = DType::f32;
    if (fill && fill->kind == Value::Kind::integer) dtype = DType::i64;
    if (fill && fill->kind == Value::Kind::boolean) dtype = DType::b8;
    if (!wanted.empty() && wanted[0].type != Types::unknown())
      dtype = context_.types[wanted[0].type].dtype;
  }
  if (!shape || !dtype) return kNotThis;
  AttributeList attributes = {{key("shape"), *shape}, {key("dtype"), *dtype}};
  if (bound.mapping->op == "full") {
    std::optional<Attribute> value = as_attribute(*bound.find("fill_value"), AttributeKind::float_);
    if (!value) return kNotThis;
    attributes.emplace_back(key("value"), std::move(*value));
  }
  Result<Results> made = emit(bound.mapping->op, {}, std::move(attributes), wanted, site);
  if (made) leave(makers_, trace_.makers, made->front());
  return some(std::move(made));
}

Applied Converter::cast(ValueId x, DType dtype, const std::vector<Wanted>& wanted,
                        const Site& site) {
  return some(emit("cast", {x}, {{key("dtype"), dtype}}, wanted, site));
}

// copy(destination, source) is the source, brought to the destination's type.
Applied Converter::copy(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> to = tensor_of(bound.find("self")), from = tensor_of(bound.find("src"));
  const Type* wanted_type = to ? type_of(*to) : nullptr;
  const Type* given = from ? type_of(*from) : nullptr;
  if (!wanted_type || !given) return kNotThis;
  bool same_shape =
      given->shape == wanted_type->shape || (makers_.contains(*to) && symbols_.in(given->shape));
  Shape shape = wanted_type->shape;
  DType dtype = wanted_type->dtype;
  bool same_dtype = given->dtype == dtype;
  leave(dropped_, trace_.dropped, *to);
  if (same_shape && same_dtype) return some(emit("clone", {*from}, {}, wanted, site));
  if (same_shape) return cast(*from, dtype, wanted, site);
  if (!same_dtype) {
    Applied inner = cast(*from, dtype, kUnnamed, site);
    if (!inner) return inner;
    from = (*inner)->front();
  }
  return some(emit("expand", {*from}, {{key("shape"), std::move(shape)}}, wanted, site));
}

// Over several axes: one after the other, the last axis first, so that the others keep their
// numbers.
Applied Converter::reduce(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  if (!type) return kNotThis;
  std::size_t rank = type->shape.size();
  std::vector<std::size_t> axes;
  const Value* dim = bound.find("dim");
  std::optional<Shape> listed = dim ? as_shape(*dim) : std::nullopt;
  for (DimId d : listed.value_or(Shape())) {
    // A tensor of rank 0 counts as one of a single axis.
    std::optional<std::size_t> axis =
        axis_of(context_.dims.value(d), std::max<std::size_t>(rank, 1));
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
    Applied converted = cast(*x, to, kUnnamed, site);
    if (!converted) return converted;
    x = (*converted)->front();
  }
  if (axes.empty()) return some(emit("detach", {*x}, {}, wanted, site));  // rank 0
  for (std::size_t k = 0; k < axes.size(); ++k) {
    bool final = k + 1 == axes.size();
    AttributeList attributes = {{key("dim"), static_cast<std::int64_t>(axes[k])},
                                {key("keepdim"), keepdim}};
    Result<Results> results =
        emit(bound.mapping->op, {*x}, std::move(attributes), final ? wanted : kUnnamed, site);
    if (!results || final) return some(std::move(results));
    x = results->front();
  }
  return kNotThis;
}

}  // namespace pw::fx
