#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/type_text.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

ValueId number_of_type(Maker& make, double value, DType dtype) {
  return make("full", {}, {{"shape", Shape()}, {"dtype", dtype}, {"value", value}});
}

}  // namespace

// ---- places

std::optional<ValueId> places_of(Maker& make, const Shape& sizes, const Shape& strides,
                                 std::int64_t offset) {
  Emitter& emitter = make.emitter();
  ValueId out =
      make("full", {},
           {{"shape", Shape()}, {"dtype", DType::i64}, {"value", static_cast<double>(offset)}});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::optional<std::int64_t> stride = emitter.dims().value(strides[i]);
    if (!stride || *stride < 0 || *stride >= kMaxDim) return std::nullopt;
    Shape along(sizes.size() - i, emitter.dims().constant(1));
    along.front() = sizes[i];
    const ValueId places = make("iota", {}, {{"shape", Shape{sizes[i]}}});
    const ValueId by =
        make("full", {},
             {{"shape", Shape()}, {"dtype", DType::i64}, {"value", static_cast<double>(*stride)}});
    out = make(
        "add",
        {out, make("reshape", {make("mul", {places, by}, {})}, {{"shape", std::move(along)}})}, {});
  }
  return out;
}

// Windows of one axis; each extends along a new last axis.
Applied convert_unfold(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::size_t rank = type ? type->shape.size() : 0;
  const std::optional<std::size_t> axis = axis_of(call.integer("dimension"), rank);
  const std::optional<std::int64_t> size = call.integer("size"), step = call.integer("step");
  if (!axis || !size || !step || *size < 0 || *step < 1) return kNotThis;
  Dims& dims = call.dims();
  const std::optional<std::int64_t> extent = dims.value(type->shape[*axis]);
  if (extent && *extent < *size) return kNotThis;
  const DimId room = dims.sub(type->shape[*axis], dims.constant(*size));
  const DimId count = dims.add(dims.div(room, dims.constant(*step)), dims.constant(1));
  if (!count.valid()) return kNotThis;
  Maker make(call.emitter, call.site);
  const std::optional<ValueId> places =
      places_of(make, {count, dims.constant(*size)}, {dims.constant(*step), dims.constant(1)}, 0);
  if (!places) return kNotThis;
  const ValueId windows = make("index", {*x, *places}, {{"dim", static_cast<std::int64_t>(*axis)}});
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i <= rank; ++i)
    if (i != *axis + 1) order.push_back(i);
  order.push_back(*axis + 1);
  return make.done(make("detach", {in_order(make, windows, order)}, {}, call.wanted));
}

// The diagonal of two axes replaced by src, whose last axis it is.
Applied convert_diagonal_scatter(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self")), src = tensor_of(call.find("src"));
  const Type *type = x ? call.type_of(*x) : nullptr, *part = src ? call.type_of(*src) : nullptr;
  const std::size_t rank = type ? type->shape.size() : 0;
  const auto offset = call.integer("offset");
  const auto first = axis_of(call.integer("dim1"), rank),
             second = axis_of(call.integer("dim2"), rank);
  if (!part || !offset || !first || !second || *first == *second || part->dtype != type->dtype)
    return kNotThis;
  Dims& dims = call.dims();
  const auto rows = dims.value(type->shape[*first]), columns = dims.value(type->shape[*second]);
  if (!rows || !columns || part->shape.size() + 1 != rank) return kNotThis;
  const std::int64_t row = std::max<std::int64_t>(0, -*offset),
                     column = std::max<std::int64_t>(0, *offset);
  const std::int64_t count = std::min(*rows - row, *columns - column);
  if (count < 1 || dims.value(part->shape.back()) != count) return kNotThis;
  std::vector<std::size_t> order{*first, *second}, back(rank), turned{rank - 2};
  for (std::size_t i = 0; i < rank; ++i)
    if (i != *first && i != *second) order.push_back(i);
  for (std::size_t i = 0; i < rank; ++i) back[order[i]] = i;
  for (std::size_t i = 0; i + 2 < rank; ++i) turned.push_back(i);
  Maker make(call.emitter, call.site);
  const Shape extent{dims.constant(count)}, one{dims.constant(1)};
  const std::optional<ValueId> i = places_of(make, extent, one, row),
                               j = places_of(make, extent, one, column);
  const ValueId put =
      make("index_put", {in_order(make, *x, order), in_order(make, *src, turned), *i, *j},
           {{"reduce", std::string("set")}});
  return make.done(make("clone", {in_order(make, put, back)}, {}, call.wanted));
}

// ---- axes and shapes

Applied convert_movedim(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const auto listed = [&](std::string_view name) -> std::optional<std::vector<std::size_t>> {
    const Value& given = *call.find(name);
    std::optional<Shape> shape = as_shape(given);
    if (const auto one = as_int(call.dims(), given); !shape && one)
      shape = Shape{call.dims().constant(*one)};
    std::vector<std::size_t> out;
    for (DimId d : shape.value_or(Shape())) {
      const auto axis = axis_of(call.dims().value(d), type->shape.size());
      if (!axis || std::ranges::find(out, *axis) != out.end()) return std::nullopt;
      out.push_back(*axis);
    }
    return shape ? std::optional(out) : std::nullopt;
  };
  if (!type) return kNotThis;
  const auto from = listed("source"), to = listed("destination");
  if (!from || !to || from->size() != to->size()) return kNotThis;
  std::vector<std::size_t> rest, order(type->shape.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    if (std::find(from->begin(), from->end(), i) == from->end()) rest.push_back(i);
  for (std::size_t i = 0, next = 0; i < order.size(); ++i) {
    const auto moved = std::find(to->begin(), to->end(), i);
    order[i] =
        moved == to->end() ? rest[next++] : (*from)[static_cast<std::size_t>(moved - to->begin())];
  }
  return permuted(call, *x, order);
}

// Each of the tensors in the shape that they broadcast to.
Applied convert_broadcast(const KnownCall& call) {
  const Value& tensors = *call.find("tensors");
  if (tensors.kind != Value::Kind::list || tensors.items.empty()) return kNotThis;
  Shape common;
  const DimId one = call.dims().constant(1);
  for (const Value& item : tensors.items) {
    const Type* type = item.kind == Value::Kind::tensor ? call.type_of(item.tensor) : nullptr;
    if (!type) return kNotThis;
    const Shape& shape = type->shape;
    if (shape.size() > common.size())
      common.insert(common.begin(), shape.size() - common.size(), one);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      DimId& to = common[common.size() - shape.size() + i];
      if (to != shape[i] && to != one && shape[i] != one) return kNotThis;
      if (to == one) to = shape[i];
    }
  }
  Results out;
  for (std::size_t i = 0; i < tensors.items.size(); ++i) {
    Results wide = PW_TRY(call.emitter.emit("expand", {tensors.items[i].tensor},
                                            {{"shape", common}}, {call.name_of(i)}, call.site));
    out.push_back(wide.front());
  }
  return std::optional(std::move(out));
}

// Coordinates: tensor i along axis i of all results, or, of 'xy', the first two exchanged.
Applied convert_meshgrid(const KnownCall& call) {
  const Value &tensors = *call.find("tensors"), &indexing = *call.find("indexing");
  if (tensors.kind != Value::Kind::list || tensors.items.empty() ||
      indexing.kind != Value::Kind::string || (indexing.text != "ij" && indexing.text != "xy"))
    return kNotThis;
  const std::size_t rank = tensors.items.size();
  Shape whole;
  std::vector<std::size_t> axis_of_tensor(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Value& item = tensors.items[i];
    const Type* type = item.kind == Value::Kind::tensor ? call.type_of(item.tensor) : nullptr;
    if (!type || type->shape.size() > 1) return kNotThis;
    whole.push_back(type->shape.empty() ? call.dims().constant(1) : type->shape[0]);
    axis_of_tensor[i] = i;
  }
  if (indexing.text == "xy" && rank > 1) {
    std::swap(axis_of_tensor[0], axis_of_tensor[1]);
    std::swap(whole[0], whole[1]);
  }
  Results out;
  for (std::size_t i = 0; i < rank; ++i) {
    Shape along(rank, call.dims().constant(1));
    along[axis_of_tensor[i]] = whole[axis_of_tensor[i]];
    Applied aligned = reshape_to(call.unnamed(), tensors.items[i].tensor, std::move(along));
    if (!aligned || !*aligned) return aligned;
    Results wide = PW_TRY(call.emitter.emit("expand", {(*aligned)->front()}, {{"shape", whole}},
                                            {call.name_of(i)}, call.site));
    out.push_back(wide.front());
  }
  return std::optional(std::move(out));
}

// ---- norms

// (Σ |x|^p)^(1/p) over the listed axes, or all; of an infinite p the extreme of |x|, of 0 the
// number of those that are not 0. bf16 and f16 in f32.
Applied convert_vector_norm(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const Value &ord = *call.find("ord"), &dtype = *call.find("dtype"), &keep = *call.find("keepdim");
  const auto axes =
      type ? listed_axes(call.emitter, call.find("dim"), type->shape.size()) : std::nullopt;
  double p = 2;
  if (ord.kind == Value::Kind::real) p = ord.real;
  if (ord.kind == Value::Kind::integer) {
    const auto whole = as_int(call.dims(), ord);
    if (!whole) return kNotThis;
    p = static_cast<double>(*whole);
  }
  const bool numeric = ord.kind == Value::Kind::real || ord.kind == Value::Kind::integer ||
                       ord.kind == Value::Kind::none;
  if (!axes || !numeric || std::isnan(p) || !is_float(type->dtype) ||
      keep.kind != Value::Kind::boolean ||
      (dtype.kind != Value::Kind::none && dtype.kind != Value::Kind::dtype))
    return kNotThis;
  const DType to = dtype.kind == Value::Kind::dtype ? dtype.dtype : type->dtype;
  if (!is_float(to)) return kNotThis;
  const DType in = to == DType::f64 ? DType::f64 : DType::f32;
  Shape shape = type->shape;
  for (const std::size_t axis : *axes) {
    shape[axis] = call.dims().constant(1);
    if (!keep.boolean) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  Maker make(call.emitter, call.site);
  const auto number = [&](double value) { return number_of_type(make, value, in); };
  const auto over_axes = [&](std::string_view op, ValueId v) {
    for (const std::size_t axis : *axes)
      v = make(op, {v}, {{"dim", static_cast<std::int64_t>(axis)}, {"keepdim", true}});
    return v;
  };
  const ValueId h = type->dtype == in ? *x : make("cast", {*x}, {{"dtype", in}});
  ValueId out;
  if (std::isinf(p)) {
    out = over_axes(p > 0 ? "amax" : "amin", make("abs", {h}, {}));
  } else if (p == 0) {
    out = over_axes("sum", make("cast", {make("ne", {h, number(0)}, {})}, {{"dtype", in}}));
  } else if (p == 1) {
    out = over_axes("sum", make("abs", {h}, {}));
  } else if (p == 2) {
    out = make("sqrt", {over_axes("sum", make("mul", {h, h}, {}))}, {});
  } else {
    const ValueId powers = make("pow", {make("abs", {h}, {}), number(p)}, {});
    out = make("pow", {over_axes("sum", powers), number(1 / p)}, {});
  }
  if (to != in) out = make("cast", {out}, {{"dtype", to}});
  return make.done(make("reshape", {out}, {{"shape", shape}}, call.wanted));
}

}  // namespace pw::fx
