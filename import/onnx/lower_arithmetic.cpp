#include <array>

#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

/// Combines operands in sequence, with NumPy's broadcasting.
fx::Value joined(OnnxCall& c, std::string_view op) {
  fx::Value out = c.tensor(0);
  for (std::size_t i = 1; i < c.count(); ++i) out = c.op(op, {out, c.tensor(i)});
  return out;
}

ModelValues lower_max(OnnxCall& c) { return {c.result(joined(c, "maximum"))}; }
ModelValues lower_min(OnnxCall& c) { return {c.result(joined(c, "minimum"))}; }
ModelValues lower_sum(OnnxCall& c) { return {c.result(joined(c, "add"))}; }
ModelValues lower_mean(OnnxCall& c) {
  const fx::Value count = real(static_cast<double>(c.count()));
  return {c.result(c.op("div", {joined(c, "add"), count}))};
}

// Multiplies or divides by 2 to the power of Y; a shift by all bits or more gives 0.
ModelValues lower_shift(OnnxCall& c) {
  const Type type = c.type(0);
  const std::string direction = c.text("direction", "");
  if (is_float(type.dtype) || type.dtype != DType::u8 ||
      (direction != "LEFT" && direction != "RIGHT"))
    throw GiveUp{"unsupported shift of dtype " + std::string(name(type.dtype))};
  const fx::Value x = c.cast(c.tensor(0), DType::i32), by = c.cast(c.tensor(1), DType::i32);
  const fx::Value least = c.op("minimum", {by, c.number(8)});
  const fx::Value factor = c.cast(
      c.op("pow", {c.op("full", {}, {{"shape", Shape()}, {"value", 2.0}, {"dtype", DType::f64}}),
                   c.cast(least, DType::f64)}),
      DType::i32);
  const fx::Value moved = direction == "LEFT"
                              ? c.op("bitwise_and", {c.op("mul", {x, factor}), c.number(255)})
                              : c.op("div", {x, factor});
  return {c.result(c.cast(moved, DType::u8))};
}

// In inference, returns the input unchanged and a mask of ones.
ModelValues lower_dropout(OnnxCall& c) {
  c.ignore("seed");
  c.ignore("ratio");
  if (c.version() < 7 && c.integer("is_test", 0) == 0) throw GiveUp{"it is in training mode"};
  bool training = false, ratio = false;
  if (c.has(1)) ratio = c.real(1) != 0;
  if (c.has(2)) training = c.integer(2) != 0;
  if (training && (ratio || !c.has(1))) throw GiveUp{"it is random (training mode)"};
  ModelValues out{c.value(0)};
  const DType mask = c.version() < 10 ? c.type(0).dtype : DType::b8;
  if (c.node().outputs.size() > 1)
    out.push_back(
        c.result(c.op("full", {}, {{"shape", c.type(0).shape}, {"value", 1.0}, {"dtype", mask}})));
  return out;
}

// ---- quantisation

/// Reshapes a tensor of one axis to broadcast along an axis of x; rank 0 and one element apply to
/// all of it.
fx::Value along(OnnxCall& c, const fx::Value& scale, const Shape& shape, std::int64_t axis) {
  const Shape given = c.type(scale).shape;
  if (given.empty()) return scale;
  if (given.size() != 1) throw GiveUp{"block scales are not supported"};
  if (c.extent(given[0]) == 1) return c.reshape(scale, {});
  Shape wide(shape.size(), c.dims().constant(1));
  wide[axis_in(axis, shape.size())] = given[0];
  return c.reshape(scale, wide);
}

std::pair<double, double> range_of(DType dtype) {
  if (dtype == DType::u8) return {0, 255};
  if (dtype == DType::i8) return {-128, 127};
  throw GiveUp{"unsupported quantisation to " + std::string(name(dtype))};
}

/// Computes saturate(round(x / scale) + zero): x and scale of one float dtype, zero a tensor of
/// numbers, or none.
fx::Value quantised(OnnxCall& c, const fx::Value& x, const fx::Value& scale,
                    const std::optional<fx::Value>& zero, DType to) {
  const fx::Value whole = c.op("round", {c.op("div", {x, scale})});
  const auto [least, most] = range_of(to);
  fx::Value moved = zero ? c.op("add", {whole, c.cast(*zero, c.type(whole).dtype)}) : whole;
  moved = c.op("minimum", {c.op("maximum", {moved, real(least)}), real(most)});
  return c.cast(moved, to);
}

ModelValues lower_quantize(OnnxCall& c) {
  const fx::Value x = c.tensor(0);
  const Shape shape = c.type(x).shape;
  const std::int64_t axis = c.integer("axis", 1);
  if (c.integer("block_size", 0) != 0 || c.integer("precision", 0) != 0)
    throw GiveUp{"block scales are not supported"};
  std::optional<DType> to =
      c.has(2) ? std::optional(c.type(2).dtype) : dtype_of(c.integer("output_dtype", 2));
  c.ignore("output_dtype");
  if (!to) throw GiveUp{"the output's dtype is not supported"};
  const bool fp8 = *to == DType::f8e4m3 || *to == DType::f8e5m2;
  if (c.integer("saturate", 1) == 0 && fp8)
    throw GiveUp{"a non-saturating cast to fp8 is not supported"};
  const fx::Value scale = c.cast(along(c, c.tensor(1), shape, axis), DType::f32),
                  wide = c.cast(x, DType::f32);
  if (fp8) {
    if (c.has(2)) (void)c.tensor(2);  // fp8 has no zero point but 0
    return {c.result(c.cast(c.op("div", {wide, scale}), *to))};
  }
  std::optional<fx::Value> zero;
  if (c.has(2)) zero = along(c, c.tensor(2), shape, axis);
  return {c.result(quantised(c, wide, scale, zero, *to))};
}

ModelValues lower_dequantize(OnnxCall& c) {
  const fx::Value x = c.tensor(0);
  const Shape shape = c.type(x).shape;
  const std::int64_t axis = c.integer("axis", 1);
  if (c.integer("block_size", 0) != 0 || c.has("output_dtype"))
    throw GiveUp{"block scales, or an unsupported output dtype"};
  const fx::Value scale = along(c, c.tensor(1), shape, axis);
  const DType dtype = c.type(scale).dtype;
  fx::Value out = c.cast(x, DType::f32);
  if (c.has(2)) out = c.op("sub", {out, c.cast(along(c, c.tensor(2), shape, axis), DType::f32)});
  return {c.result(c.cast(c.op("mul", {out, c.cast(scale, DType::f32)}), dtype))};
}

fx::Value extreme_of(OnnxCall& c, std::string_view op, const fx::Value& x) {
  DimId count = c.dims().constant(1);
  for (const DimId d : c.type(x).shape) count = c.dims().mul(count, d);
  return c.op(op, {c.reshape(x, {count})}, {{"dim", std::int64_t{0}}});
}

ModelValues lower_dynamic_quantize(OnnxCall& c) {
  const fx::Value x = c.tensor(0);
  if (c.type(x).dtype != DType::f32) throw GiveUp{"it takes f32"};
  const fx::Value least = c.op("minimum", {extreme_of(c, "amin", x), real(0)});
  const fx::Value most = c.op("maximum", {extreme_of(c, "amax", x), real(0)});
  const fx::Value scale = c.op("div", {c.op("sub", {most, least}), real(255)});
  const fx::Value at = c.op("round", {c.op("div", {c.op("sub", {real(0), least}), scale})});
  const fx::Value zero =
      c.cast(c.op("minimum", {c.op("maximum", {at, real(0)}), real(255)}), DType::u8);
  return {c.result(quantised(c, x, scale, zero, DType::u8)), c.result(scale), c.result(zero)};
}

constexpr auto kArithmeticRows = std::to_array<Lowering>({
    {"Max", 8, lower_max},
    {"Min", 8, lower_min},
    {"Sum", 8, lower_sum},
    {"Mean", 8, lower_mean},
    {"BitShift", 11, lower_shift},
    {"Dropout", 1, lower_dropout},
    {"QuantizeLinear", 10, lower_quantize},
    {"DequantizeLinear", 10, lower_dequantize},
    {"DynamicQuantizeLinear", 11, lower_dynamic_quantize},
});

}  // namespace

std::span<const Lowering> arithmetic_lowerings() { return kArithmeticRows; }

}  // namespace pw::onnx
