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
Applied convert_matmul(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self")), y = tensor_of(call.find("other"));
  const Type *a = x ? call.type_of(*x) : nullptr, *b = y ? call.type_of(*y) : nullptr;
  if (!a || !b || a->dtype != b->dtype || a->shape.empty() || b->shape.empty()) return kNotThis;
  const DimId one = call.dims().constant(1);
  Shape left = a->shape, right = b->shape;
  const bool row = left.size() == 1, column = right.size() == 1;
  if (row) left.insert(left.begin(), one);
  if (column) right.push_back(one);
  const auto batch = common_shape(call.dims(), Shape(left.begin(), left.end() - 2),
                                  Shape(right.begin(), right.end() - 2));
  if (!batch) return kNotThis;
  Maker make(call.emitter, call.site);
  const auto spread = [&](ValueId v, const Shape& matrix) {
    const Type* type = call.type_of(v);
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
  if (!row && !column) return make.done(make(op, factors, {}, call.wanted));
  return make.done(
      make("reshape", {make(op, factors, {})}, {{"shape", std::move(shape)}}, call.wanted));
}

// Repeats each element in place along an axis, or along the flattened tensor.
Applied convert_repeat_interleave(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const Value &repeats = *call.find("repeats"), &dim = *call.find("dim");
  if (!type || repeats.kind != Value::Kind::integer) return kNotThis;
  Dims& dims = call.dims();
  Shape shape = type->shape;
  std::optional<std::size_t> axis = axis_of(as_int(call.dims(), dim), shape.size());
  if (dim.kind == Value::Kind::none) {
    const DimId count = count_of(dims, shape);
    if (!count.valid()) return kNotThis;
    shape = {count};
    axis = 0;
  }
  const DimId most = axis ? dims.mul(shape[*axis], repeats.dim) : DimId();
  if (!most.valid() || dims.value(repeats.dim).value_or(1) < 0) return kNotThis;
  const auto after = shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1;
  Shape inserted = shape, spread = shape;
  inserted.insert(inserted.begin() + (after - shape.begin()), dims.constant(1));
  spread.insert(spread.begin() + (after - shape.begin()), repeats.dim);
  shape[*axis] = most;
  Maker make(call.emitter, call.site);
  const ValueId wide = make("expand", {make("reshape", {*x}, {{"shape", std::move(inserted)}})},
                            {{"shape", std::move(spread)}});
  return make.done(make("reshape", {wide}, {{"shape", std::move(shape)}}, call.wanted));
}

// Elements shifted past the end of an axis come back at its start. Without axes, the tensor is
// rolled as if it were flat.
Applied convert_roll(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  const std::optional<Shape> shifts = as_shape(*call.find("shifts"));
  const auto listed = as_shape(*call.find("dims"));
  if (!type || !shifts || !listed) return kNotThis;
  Dims& dims = call.dims();
  const Shape shape = type->shape;
  const bool flat = listed->empty();
  if (shifts->size() != (flat ? 1 : listed->size())) return kNotThis;
  Maker make(call.emitter, call.site);
  ValueId out = *x;
  if (flat) out = make("reshape", {out}, {{"shape", Shape{count_of(dims, shape)}}});
  for (std::size_t i = 0; i < shifts->size(); ++i) {
    const auto shift = dims.value((*shifts)[i]);
    const auto axis =
        flat ? std::optional<std::size_t>(0) : axis_of(dims.value((*listed)[i]), shape.size());
    const Type* now = call.type_of(out);
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
  return make.done(make("reshape", {out}, {{"shape", shape}}, call.wanted));
}

// The output extents follow from the input extents, as in PyTorch.
Applied convert_conv_transpose(const KnownCall& call) {
  const auto x = tensor_of(call.find("input")), w = tensor_of(call.find("weight"));
  const Type *type = x ? call.type_of(*x) : nullptr, *of_weight = w ? call.type_of(*w) : nullptr;
  if (!type || !of_weight || of_weight->shape.size() < 3 ||
      type->shape.size() != of_weight->shape.size())
    return kNotThis;
  const std::size_t axes = type->shape.size() - 2;
  const auto stride = of_each_axis(call.emitter, call.find("stride"), axes, 1),
             padding = of_each_axis(call.emitter, call.find("padding"), axes, 0),
             more = of_each_axis(call.emitter, call.find("output_padding"), axes, 0),
             dilation = of_each_axis(call.emitter, call.find("dilation"), axes, 1);
  const std::optional<std::int64_t> groups = call.integer("groups");
  if (!stride || !padding || !more || !dilation || !groups) return kNotThis;
  Dims& dims = call.dims();
  const DimId one = dims.constant(1), two = dims.constant(2);
  Shape size;
  for (std::size_t i = 0; i < axes; ++i) {
    DimId out = dims.mul(dims.sub(type->shape[i + 2], one), (*stride)[i]);
    out = dims.sub(out, dims.mul(two, (*padding)[i]));
    out = dims.add(out, dims.mul((*dilation)[i], dims.sub(of_weight->shape[i + 2], one)));
    size.push_back(dims.add(dims.add(out, (*more)[i]), one));
  }
  const std::optional<ValueId> bias = tensor_of(call.find("bias"));
  return call.emit("transposed_convolution", {*x, *w, bias.value_or(ValueId())},
                   {{"size", std::move(size)},
                    {"stride", *stride},
                    {"padding", *padding},
                    {"dilation", *dilation},
                    {"groups", *groups}});
}

// One axis as several; one of them may be -1.
Applied convert_unflatten(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  std::optional<Shape> sizes = as_shape(*call.find("sizes"));
  const auto axis = call.axis("dim", type);
  if (!axis || !sizes || sizes->empty()) return kNotThis;
  Shape shape = type->shape;
  const auto place = shape.begin() + static_cast<std::ptrdiff_t>(*axis);
  const DimId whole = *place;
  DimId rest = whole;
  DimId* open = nullptr;
  for (DimId& size : *sizes) {
    if (call.dims().value(size) == -1) {
      if (open) return kNotThis;
      open = &size;
    } else if (rest.valid()) {
      rest = call.dims().value(size) == 0 ? DimId() : call.dims().div(rest, size);
    }
  }
  if (open && !rest.valid()) return kNotThis;
  if (open) *open = rest;
  if (count_of(call.dims(), *sizes) != whole) return kNotThis;
  shape.insert(shape.erase(place), sizes->begin(), sizes->end());
  return reshape_to(call, *x, std::move(shape));
}

// The windows of an image, each a column of [channels × window, windows].
Applied convert_im2col(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  constexpr std::array kNames = {"kernel_size", "dilation", "padding", "stride"};
  std::array<std::array<DimId, 2>, kNames.size()> given;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::optional<Shape> list = as_shape(*call.find(kNames[i]));
    if (!list || list->size() != 2) return kNotThis;
    given[i] = {(*list)[0], (*list)[1]};
  }
  const auto& [kernel, dilation, padding, stride] = given;
  if (!type || type->shape.size() < 3 || type->shape.size() > 4) return kNotThis;
  Dims& dims = call.dims();
  const DimId one = dims.constant(1);
  const Shape shape = type->shape;
  const std::size_t rows = shape.size() - 2;
  Maker make(call.emitter, call.site);
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
      make("reshape", {in_order(make, *out, order)}, {{"shape", std::move(columns)}}, call.wanted));
}

}  // namespace pw::fx
