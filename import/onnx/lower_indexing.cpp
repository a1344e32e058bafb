#include <array>
#include <cmath>

#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

const OnnxCall::OpAttributes kFromFront{{"dim", std::int64_t{0}}, {"wrap", true}};

ModelValues lower_gather(OnnxCall& c) {
  const auto axis = static_cast<std::int64_t>(axis_in(c.integer("axis", 0), c.rank(0)));
  return {c.result(c.op("index", {c.tensor(0), c.tensor(1)}, {{"dim", axis}, {"wrap", true}}))};
}

/// Returns the indices of each axis, given those of one axis for all elements.
std::vector<fx::Value> elementwise_places(OnnxCall& c, const fx::Value& at, std::size_t axis) {
  const Shape shape = c.type(at).shape;
  std::vector<fx::Value> out;
  for (std::size_t i = 0; i < shape.size(); ++i)
    out.push_back(i == axis ? at : c.places_along(shape[i], i, shape.size()));
  return out;
}

ModelValues lower_gather_elements(OnnxCall& c) {
  const std::size_t axis = axis_in(c.integer("axis", 0), c.rank(0));
  std::vector<fx::Value> operands = elementwise_places(c, c.tensor(1), axis);
  operands.insert(operands.begin(), c.tensor(0));
  return {c.result(c.op("index", operands, kFromFront))};
}

/// Splits the last axis of a tensor of indices into one tensor for each element.
std::vector<fx::Value> index_columns(OnnxCall& c, const fx::Value& at) {
  Shape shape = c.type(at).shape;
  if (shape.empty()) throw GiveUp{"its indices are a scalar"};
  const std::size_t last = shape.size() - 1;
  const std::int64_t count = c.extents({shape[last]})[0];
  if (count > 64) throw GiveUp{"its indices have more columns than a tensor has axes"};
  shape.pop_back();
  std::vector<fx::Value> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(
        c.reshape(c.slice(at, last, c.dims().constant(i), c.dims().constant(i + 1)), shape));
  return out;
}

ModelValues lower_gather_nd(OnnxCall& c) {
  const fx::Value at = c.tensor(1);
  const Shape shape = c.type(at).shape;
  const auto batches =
      static_cast<std::size_t>(std::max<std::int64_t>(c.integer("batch_dims", 0), 0));
  if (batches >= shape.size()) throw GiveUp{"batch_dims is not less than the rank of the indices"};
  std::vector<fx::Value> operands{c.tensor(0)};
  for (std::size_t i = 0; i < batches; ++i)
    operands.push_back(c.places_along(shape[i], i, shape.size() - 1));
  for (fx::Value& column : index_columns(c, at)) operands.push_back(std::move(column));
  if (operands.size() == 1) throw GiveUp{"the last axis of its indices is empty"};
  return {c.result(c.op("index", operands, kFromFront))};
}

std::string reduction_of(OnnxCall& c) {
  const std::string given = c.text("reduction", "none");
  if (given == "none") return "set";
  if (given == "add") return "sum";
  if (given == "mul") return "prod";
  if (given == "max") return "amax";
  if (given == "min") return "amin";
  throw GiveUp{"reduction `" + given + "`"};
}

ModelValues scattered(OnnxCall& c, std::vector<fx::Value> places) {
  OnnxCall::OpAttributes attributes = kFromFront;
  attributes.emplace_back("reduce", reduction_of(c));
  places.insert(places.begin(), {c.tensor(0), c.tensor(2)});
  return {c.result(c.op("index_put", places, attributes))};
}

ModelValues lower_scatter_elements(OnnxCall& c) {
  return scattered(c, elementwise_places(c, c.tensor(1), axis_in(c.integer("axis", 0), c.rank(0))));
}
ModelValues lower_scatter_nd(OnnxCall& c) { return scattered(c, index_columns(c, c.tensor(1))); }

// Selects values[1] where the place equals the index, values[0] elsewhere. An index outside the
// depth matches no place.
ModelValues lower_one_hot(OnnxCall& c) {
  const fx::Value given = c.cast(c.tensor(0), DType::i64), values = c.tensor(2);
  const Shape shape = c.type(given).shape;
  const std::int64_t depth = c.value(1).contents && is_float(c.value(1).contents->dtype)
                                 ? static_cast<std::int64_t>(c.real(1))
                                 : c.integer(1);
  const std::size_t rank = shape.size() + 1, axis = axis_in(c.integer("axis", -1), rank);
  Shape wide = shape;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(axis), c.dims().constant(1));
  const fx::Value wrapped = c.op(
      "select", {c.op("lt", {given, c.number(0)}), c.op("add", {given, c.number(depth)}), given});
  const fx::Value hot =
      c.op("eq", {c.reshape(wrapped, wide), c.places_along(c.dims().constant(depth), axis, rank)});
  const auto value = [&](std::int64_t i) {
    return c.reshape(c.slice(values, 0, c.dims().constant(i), c.dims().constant(i + 1)), {});
  };
  return {c.result(c.op("select", {hot, value(1), value(0)}))};
}

// Handles what fold() leaves: reals, and long lists of integers.
ModelValues lower_range(OnnxCall& c) {
  const DType dtype = c.type(0).dtype;
  if (dtype != DType::f32 && dtype != DType::f64 && is_float(dtype))
    throw GiveUp{"a range of 16-bit floats is not supported"};
  const double begin = c.real(0), end = c.real(1), step = c.real(2);
  const double count = std::max(0.0, std::ceil((end - begin) / step));
  if (!(count < 1e9)) throw GiveUp{"the range is too long"};
  const Shape shape{c.dims().constant(static_cast<std::int64_t>(count))};
  const fx::Value places = c.cast(c.op("iota", {}, {{"shape", shape}}), dtype);
  const fx::Value steps = c.op(
      "mul", {places, is_float(dtype) ? real(step) : c.number(static_cast<std::int64_t>(step))});
  return {c.result(c.op(
      "add", {steps, is_float(dtype) ? real(begin) : c.number(static_cast<std::int64_t>(begin))}))};
}

// Column minus row determines the side of the diagonal on which an element is.
ModelValues lower_trilu(OnnxCall& c) {
  const fx::Value x = c.tensor(0);
  const Type type = c.type(x);
  const std::size_t rank = type.shape.size();
  if (rank < 2) throw GiveUp{"its operand is not a matrix"};
  const std::int64_t k = c.has(1) ? c.integer(1) : 0;
  const fx::Value rows = c.places_along(type.shape[rank - 2], 0, 2),
                  columns = c.places_along(type.shape[rank - 1], 1, 2);
  const fx::Value kept =
      c.op(c.integer("upper", 1) != 0 ? "ge" : "le", {c.op("sub", {columns, rows}), c.number(k)});
  const fx::Value zero =
      c.op("full", {}, {{"shape", Shape()}, {"value", 0.0}, {"dtype", type.dtype}});
  return {c.result(c.op("select", {kept, x, zero}))};
}

ModelValues lower_eye(OnnxCall& c) {
  const Type type = c.type(0);
  const std::optional<DType> dtype = c.has("dtype") ? dtype_of(c.integer("dtype")) : type.dtype;
  if (type.shape.size() != 2 || !dtype)
    throw GiveUp{"its operand is not a matrix of a supported dtype"};
  const fx::Value rows = c.places_along(type.shape[0], 0, 2),
                  columns = c.places_along(type.shape[1], 1, 2);
  return {c.result(
      c.cast(c.op("eq", {c.op("sub", {columns, rows}), c.number(c.integer("k", 0))}), *dtype))};
}

// Reverses the first elements of each sequence: position p reads len - 1 - p while p < len.
ModelValues lower_reverse_sequence(OnnxCall& c) {
  const fx::Value x = c.tensor(0), lengths = c.tensor(1);
  const Shape shape = c.type(x).shape;
  const auto batch = static_cast<std::size_t>(c.integer("batch_axis", 1)),
             time = static_cast<std::size_t>(c.integer("time_axis", 0));
  if (batch > 1 || time > 1 || batch == time || shape.size() < 2)
    throw GiveUp{"its axes are not 0 and 1"};
  const fx::Value place = c.places_along(shape[time], time, 2);
  Shape along(2, c.dims().constant(1));
  along[batch] = shape[batch];
  const fx::Value length = c.reshape(c.cast(lengths, DType::i64), along);
  const fx::Value back = c.op("sub", {c.op("sub", {length, c.number(1)}), place});
  const fx::Value from = c.op("select", {c.op("lt", {place, length}), back, place});
  const fx::Value row = c.places_along(shape[batch], batch, 2);
  return {c.result(c.op("index", time == 0 ? std::vector{x, from, row} : std::vector{x, row, from},
                        kFromFront))};
}

constexpr auto kIndexRows = std::to_array<Lowering>({
    {"Gather", 1, lower_gather},
    {"GatherElements", 11, lower_gather_elements},
    {"GatherND", 11, lower_gather_nd},
    {"Scatter", 9, lower_scatter_elements},
    {"ScatterElements", 11, lower_scatter_elements},
    {"ScatterND", 11, lower_scatter_nd},
    {"OneHot", 9, lower_one_hot},
    {"Range", 11, lower_range},
    {"Trilu", 14, lower_trilu},
    {"EyeLike", 9, lower_eye},
    {"ReverseSequence", 10, lower_reverse_sequence},
});

}  // namespace

std::span<const Lowering> index_lowerings() { return kIndexRows; }

}  // namespace pw::onnx
