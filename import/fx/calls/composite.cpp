#include <algorithm>
#include <array>

#include "import/fx/calls/apply.hpp"
#include "import/fx/emit/put_back.hpp"

namespace pw::fx {
namespace {

// Broadcast, as far as it is known to work.
std::optional<Shape> common_shape(const Dims& dims, const Shape& a, const Shape& b) {
  const Shape &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    DimId& to = out[longer.size() - shorter.size() + i];
    const bool spreads = dims.value(to) == 1;
    if (to != shorter[i] && !spreads && dims.value(shorter[i]) != 1) return std::nullopt;
    if (spreads) to = shorter[i];
  }
  return out;
}

}  // namespace

// Batches broadcast; a vector is a row on the left, a column on the right.
Applied convert_matmul(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self")), y = tensor_of(bound.find("other"));
  const Type *a = x ? emitter.type_of(*x) : nullptr, *b = y ? emitter.type_of(*y) : nullptr;
  if (!a || !b || a->dtype != b->dtype || a->shape.empty() || b->shape.empty()) return kNotThis;
  const DimId one = emitter.dims().constant(1);
  Shape left = a->shape, right = b->shape;
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) left.insert(left.begin(), one);
  if (column) right.push_back(one);
  const auto batch = common_shape(emitter.dims(), Shape(left.begin(), left.end() - 2),
                                  Shape(right.begin(), right.end() - 2));
  if (!batch) return kNotThis;
  Maker make(emitter, site);
  const auto spread = [&](ValueId v, const Shape& matrix) {
    const Type* type = emitter.type_of(v);
    if (type && type->shape != matrix) v = make("reshape", {v}, {{"shape", matrix}});
    Shape whole = *batch;
    whole.insert(whole.end(), matrix.end() - 2, matrix.end());
    return whole == matrix ? v : make("expand", {v}, {{"shape", whole}});
  };
  const std::vector<ValueId> factors = {spread(*x, left), spread(*y, right)};
  Shape shape = *batch;
  if (!row) shape.push_back(left[left.size() - 2]);
  if (!column) shape.push_back(right.back());
  const std::string_view op = batch->empty() ? "mm" : "bmm";
  if (!row && !column) return make.done(make(op, factors, {}, wanted));
  return make.done(make("reshape", {make(op, factors, {})}, {{"shape", std::move(shape)}}, wanted));
}

// Repeats each element in place along an axis, or along the flattened tensor.
Applied convert_repeat_interleave(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                                  const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const Value &repeats = *bound.find("repeats"), &dim = *bound.find("dim");
  if (!type || repeats.kind != Value::Kind::integer) return kNotThis;
  Dims& dims = emitter.dims();
  Shape shape = type->shape;
  std::optional<std::size_t> axis = axis_of(as_int(emitter.dims(), dim), shape.size());
  if (dim.kind == Value::Kind::none) {
    const DimId count = count_of(dims, shape);
    if (!count.valid()) return kNotThis;
    shape = {count};
    axis = 0;
  }
  const DimId most = axis ? dims.mul(shape[*axis], repeats.dim) : DimId();
  if (!most.valid() || dims.value(repeats.dim).value_or(1) < 0) return kNotThis;
  const auto behind = shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1;
  Shape apart = shape, spread = shape;
  apart.insert(apart.begin() + (behind - shape.begin()), dims.constant(1));
  spread.insert(spread.begin() + (behind - shape.begin()), repeats.dim);
  shape[*axis] = most;
  Maker make(emitter, site);
  const ValueId wide = make("expand", {make("reshape", {*x}, {{"shape", std::move(apart)}})},
                            {{"shape", std::move(spread)}});
  return make.done(make("reshape", {wide}, {{"shape", std::move(shape)}}, wanted));
}

// Elements shifted past the end of an axis come back at its start. Without axes, the tensor is
// rolled as if it were flat.
Applied convert_roll(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                     const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  const std::optional<Shape> shifts = as_shape(*bound.find("shifts"));
  const auto listed = as_shape(*bound.find("dims"));
  if (!type || !shifts || !listed) return kNotThis;
  Dims& dims = emitter.dims();
  const Shape shape = type->shape;
  const bool flat = listed->empty();
  if (shifts->size() != (flat ? 1 : listed->size())) return kNotThis;
  Maker make(emitter, site);
  ValueId out = *x;
  if (flat) out = make("reshape", {out}, {{"shape", Shape{count_of(dims, shape)}}});
  for (std::size_t i = 0; i < shifts->size(); ++i) {
    const auto shift = dims.value((*shifts)[i]);
    const auto axis =
        flat ? std::optional<std::size_t>(0) : axis_of(dims.value((*listed)[i]), shape.size());
    const Type* now = emitter.type_of(out);
    if (!shift || !axis || !now) return kNotThis;
    const DimId size = now->shape[*axis];
    if (dims.value(size) == 0) continue;
    // With a symbolic extent, the shift is reduced modulo the extent.
    const DimId moved = dims.mod(dims.constant(*shift), size);
    const DimId cut = moved.valid() ? dims.sub(size, moved) : moved;
    if (!cut.valid()) return kNotThis;
    if (dims.value(moved) == 0) continue;
    out = make("cat",
               {part_of_axis(make, out, *axis, cut, size),
                part_of_axis(make, out, *axis, dims.constant(0), cut)},
               {{"dim", static_cast<std::int64_t>(*axis)}});
  }
  return make.done(make("reshape", {out}, {{"shape", shape}}, wanted));
}

// The output extents follow from the input extents, as in PyTorch.
Applied convert_conv_transpose(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                               const Site& site) {
  const auto x = tensor_of(bound.find("input")), w = tensor_of(bound.find("weight"));
  const Type *type = x ? emitter.type_of(*x) : nullptr,
             *of_weight = w ? emitter.type_of(*w) : nullptr;
  if (!type || !of_weight || of_weight->shape.size() < 3 ||
      type->shape.size() != of_weight->shape.size())
    return kNotThis;
  const std::size_t axes = type->shape.size() - 2;
  const auto stride = of_each_axis(emitter, bound.find("stride"), axes, 1),
             padding = of_each_axis(emitter, bound.find("padding"), axes, 0),
             more = of_each_axis(emitter, bound.find("output_padding"), axes, 0),
             dilation = of_each_axis(emitter, bound.find("dilation"), axes, 1);
  const std::optional<std::int64_t> groups = as_int(emitter.dims(), *bound.find("groups"));
  if (!stride || !padding || !more || !dilation || !groups) return kNotThis;
  Dims& dims = emitter.dims();
  const DimId one = dims.constant(1), two = dims.constant(2);
  Shape size;
  for (std::size_t i = 0; i < axes; ++i) {
    DimId out = dims.mul(dims.sub(type->shape[i + 2], one), (*stride)[i]);
    out = dims.sub(out, dims.mul(two, (*padding)[i]));
    out = dims.add(out, dims.mul((*dilation)[i], dims.sub(of_weight->shape[i + 2], one)));
    size.push_back(dims.add(dims.add(out, (*more)[i]), one));
  }
  const std::optional<ValueId> bias = tensor_of(bound.find("bias"));
  return some(emitter.emit("transposed_convolution", {*x, *w, bias.value_or(ValueId())},
                           {{"size", std::move(size)},
                            {"stride", *stride},
                            {"padding", *padding},
                            {"dilation", *dilation},
                            {"groups", *groups}},
                           wanted, site));
}

// One axis as several; one of them may be -1.
Applied convert_unflatten(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                          const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  std::optional<Shape> sizes = as_shape(*bound.find("sizes"));
  const auto axis = axis_of(emitter, bound.find("dim"), type);
  if (!axis || !sizes || sizes->empty()) return kNotThis;
  Shape shape = type->shape;
  const auto place = shape.begin() + static_cast<std::ptrdiff_t>(*axis);
  const DimId whole = *place;
  DimId rest = whole;
  DimId* open = nullptr;
  for (DimId& size : *sizes) {
    if (emitter.dims().value(size) == -1) {
      if (open) return kNotThis;
      open = &size;
    } else if (rest.valid()) {
      rest = emitter.dims().value(size) == 0 ? DimId() : emitter.dims().div(rest, size);
    }
  }
  if (open && !rest.valid()) return kNotThis;
  if (open) *open = rest;
  if (count_of(emitter.dims(), *sizes) != whole) return kNotThis;
  shape.insert(shape.erase(place), sizes->begin(), sizes->end());
  return reshape_to(emitter, *x, std::move(shape), wanted, site);
}

// The windows of an image, each a column of [channels × window, windows].
Applied convert_im2col(Emitter& emitter, const Bound& bound, const Outputs& wanted,
                       const Site& site) {
  const auto [x, type] = typed_tensor(emitter, bound.find("self"));
  constexpr std::array kNames = {"kernel_size", "dilation", "padding", "stride"};
  std::array<std::array<DimId, 2>, kNames.size()> given;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::optional<Shape> list = as_shape(*bound.find(kNames[i]));
    if (!list || list->size() != 2) return kNotThis;
    given[i] = {(*list)[0], (*list)[1]};
  }
  const auto& [kernel, dilation, padding, stride] = given;
  if (!type || type->shape.size() < 3 || type->shape.size() > 4) return kNotThis;
  Dims& dims = emitter.dims();
  const DimId one = dims.constant(1);
  const Shape shape = type->shape;
  const std::size_t rows = shape.size() - 2;
  Maker make(emitter, site);
  std::optional<ValueId> out =
      padded(make, *x, {{padding[1], padding[1]}, {padding[0], padding[0]}}, 0.0);
  std::array<DimId, 2> counts;
  for (std::size_t i = 0; i < 2 && out; ++i) {
    const auto reach = dims.value(dims.mul(dilation[i], dims.sub(kernel[i], one)));
    const auto step = dims.value(stride[i]), more = dims.value(padding[i]);
    if (!reach || !step || !more || *step < 1) return kNotThis;
    const DimId room = dims.add(shape[rows + i], dims.constant(2 * *more - *reach - 1));
    counts[i] = room.valid() ? dims.add(dims.div(room, stride[i]), one) : room;
    if (!counts[i].valid()) return kNotThis;
    const auto places = places_of(make, {counts[i], kernel[i]}, {stride[i], dilation[i]}, 0);
    if (!places) return kNotThis;
    // After the first two axes of the image, [windows, window] of the rows replace one axis.
    const auto axis = static_cast<std::int64_t>(rows + 2 * i);
    out = make("index", {*out, *places}, {{"dim", axis}});
  }
  if (!out) return kNotThis;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows; ++i) order.push_back(i);
  order.insert(order.end(), {rows + 1, rows + 3, rows, rows + 2});
  Shape columns(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(rows) - 1);
  columns.push_back(dims.mul(shape[rows - 1], dims.mul(kernel[0], kernel[1])));
  columns.push_back(dims.mul(counts[0], counts[1]));
  if (!columns.back().valid() || !columns[columns.size() - 2].valid()) return kNotThis;
  return make.done(
      make("reshape", {in_order(make, *out, order)}, {{"shape", std::move(columns)}}, wanted));
}

}  // namespace pw::fx
