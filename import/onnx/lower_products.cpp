#include <algorithm>
#include <array>

#include "import/fx/einsum.hpp"
#include "import/onnx/lowering.hpp"

namespace pw::onnx {
namespace {

/// Computes NumPy's matmul: vectors become rows, batches broadcast.
fx::Value matmul_of(OnnxCall& c, fx::Value a, fx::Value b) {
  Shape s = c.type(a).shape, t = c.type(b).shape;
  if (s.empty() || t.empty()) throw GiveUp{"an operand is a scalar"};
  const DimId one = c.dims().constant(1);
  const bool row = s.size() == 1, column = t.size() == 1;
  if (row) s.insert(s.begin(), one);
  if (column) t.push_back(one);
  const DimId n = s[s.size() - 2], k = s.back(), m = t.back();
  Shape batch, left(s.begin(), s.end() - 2), right(t.begin(), t.end() - 2);
  const std::size_t rank = std::max(left.size(), right.size());
  left.insert(left.begin(), rank - left.size(), one);
  right.insert(right.begin(), rank - right.size(), one);
  for (std::size_t i = 0; i < rank; ++i) batch.push_back(left[i] == one ? right[i] : left[i]);
  const auto shaped = [&](DimId x, DimId y) {
    Shape out = batch;
    out.insert(out.end(), {x, y});
    return out;
  };
  const bool plain = std::ranges::all_of(right, [&](DimId d) { return d == one; });
  fx::Value out;
  if (plain) {  // one matrix for all rows
    DimId rows = n;
    for (const DimId d : batch) rows = c.dims().mul(rows, d);
    out = c.reshape(c.op("mm", {c.reshape(a, {rows, k}), c.reshape(b, {t[t.size() - 2], m})}),
                    shaped(n, m));
  } else {
    out = c.op("bmm", {c.expand(c.reshape(a, s), shaped(n, k)),
                       c.expand(c.reshape(b, t), shaped(t[t.size() - 2], m))});
  }
  Shape result = batch;
  if (!row) result.push_back(n);
  if (!column) result.push_back(m);
  return c.reshape(out, result);
}

ModelValues lower_matmul(OnnxCall& c) {
  const fx::Value a = c.tensor(0), b = c.tensor(1);
  const DType dtype = c.type(a).dtype;
  if (!is_float(dtype)) throw GiveUp{"an operand is not a float"};
  return {c.result(matmul_of(c, a, b))};
}

// alpha · A'B' + beta · C
ModelValues lower_gemm(OnnxCall& c) {
  const DType dtype = c.type(0).dtype;
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  if (!is_float(dtype)) throw GiveUp{"an operand is not a float"};
  c.ignore("broadcast");  // of version 6: the shapes say so
  const auto operand = [&](std::size_t i, std::string_view transposed) {
    fx::Value x = half ? c.cast(c.tensor(i), DType::f32) : c.tensor(i);
    if (c.type(x).shape.size() != 2) throw GiveUp{"its operand is not a matrix"};
    return c.integer(transposed, 0) != 0 ? c.permute(x, {1, 0}) : x;
  };
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  fx::Value out = c.op("mm", {operand(0, "transA"), operand(1, "transB")});
  if (alpha != 1) out = c.op("mul", {out, real(alpha)});
  if (c.has(2)) {
    fx::Value bias = c.cast(c.tensor(2), c.type(out).dtype);
    if (beta != 1) bias = c.op("mul", {bias, real(beta)});
    out = c.op("add", {out, bias});
  }
  return {c.result(c.cast(out, dtype))};
}

// ---- quantised numbers, whose sums f64 holds

/// Subtracts the zero point of x, in f64. A zero point of one axis applies to the rows of the left
/// side, the columns of the right.
fx::Value centred(OnnxCall& c, std::size_t x, std::optional<std::size_t> zero, bool left) {
  const fx::Value wide = c.cast(c.tensor(x), DType::f64);
  if (!zero || !c.has(*zero)) return wide;
  fx::Value point = c.cast(c.tensor(*zero), DType::f64);
  Shape shape = c.type(point).shape;
  if (shape.size() == 1 && left && c.extent(shape[0]) != 1)
    point = c.reshape(point, {shape[0], c.dims().constant(1)});
  return c.op("sub", {wide, point});
}

ModelValues lower_matmul_integer(OnnxCall& c) {
  const fx::Value out = matmul_of(c, centred(c, 0, 2, true), centred(c, 1, 3, false));
  return {c.result(c.cast(out, DType::i32))};
}

/// Returns a factor for each row of the left side, or each column: rank 1 as a column, or as a row.
fx::Value factor(OnnxCall& c, std::size_t i, bool left) {
  const fx::Value scale = c.cast(c.tensor(i), DType::f32);
  const Shape shape = c.type(scale).shape;
  return shape.size() == 1 && left && c.extent(shape[0]) != 1
             ? c.reshape(scale, {shape[0], c.dims().constant(1)})
             : scale;
}

ModelValues lower_qlinear_matmul(OnnxCall& c) {
  const fx::Value product =
      c.cast(matmul_of(c, centred(c, 0, 2, true), centred(c, 3, 5, false)), DType::f32);
  const fx::Value scale =
      c.op("div", {c.op("mul", {factor(c, 1, true), factor(c, 4, false)}), factor(c, 6, true)});
  const DType to = c.type(7).dtype;
  if (to != DType::u8 && to != DType::i8)
    throw GiveUp{"unsupported quantisation to " + std::string(name(to))};
  const double least = to == DType::u8 ? 0 : -128;
  fx::Value out = c.op("round", {c.op("mul", {product, scale})});
  out = c.op("add", {out, c.cast(c.tensor(7), DType::f32)});
  out = c.op("minimum", {c.op("maximum", {out, real(least)}), real(least + 255)});
  return {c.result(c.cast(out, to))};
}

// ---- Einsum

/// Returns the operand with its axes in the order of `letters`, size 1 for letters that it lacks.
fx::Value spread(OnnxCall& c, fx::Value x, const std::string& term, const std::string& letters) {
  std::vector<std::size_t> order;
  Shape shape;
  for (const char letter : letters) {
    const std::size_t at = term.find(letter);
    if (at != std::string::npos) order.push_back(at);
    shape.push_back(at == std::string::npos ? c.dims().constant(1) : c.type(x).shape[at]);
  }
  return c.reshape(c.permute(x, order), shape);
}

/// Multiplies all operands and sums over the axes that the result lacks.
ModelValues lower_einsum(OnnxCall& c) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < c.count(); ++i) ranks.push_back(c.rank(i));
  const OrReason<EinsumTerms> read = einsum_terms(c.text("equation", ""), ranks);
  if (!read) throw GiveUp{read.error()};
  const EinsumTerms& terms = *read;
  std::string letters = terms.result;
  for (const std::string& term : terms.operands)
    for (const char letter : term)
      if (letters.find(letter) == std::string::npos) letters += letter;
  fx::Value out = spread(c, c.tensor(0), terms.operands[0], letters);
  for (std::size_t i = 1; i < c.count(); ++i)
    out = c.op("mul", {out, spread(c, c.tensor(i), terms.operands[i], letters)});
  for (std::size_t axis = letters.size(); axis-- > terms.result.size();)
    out = c.op("sum", {out}, {{"dim", static_cast<std::int64_t>(axis)}});
  return {c.result(out)};
}

constexpr auto kProductRows = std::to_array<Lowering>({
    {"MatMul", 1, lower_matmul},
    {"Gemm", 1, lower_gemm},
    {"MatMulInteger", 10, lower_matmul_integer},
    {"QLinearMatMul", 10, lower_qlinear_matmul},
    {"Einsum", 12, lower_einsum},
});

}  // namespace

std::span<const Lowering> product_lowerings() { return kProductRows; }

}  // namespace pw::onnx
