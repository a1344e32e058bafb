// Single-precision attention that sums in the order of the tensor-core kernels (documented in
// cuda/kernels/attention/tensor_attention.cu): the oracle for their bits. It covers 16-bit floats;
// other calls and all other ops run on the interpreter.
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/attention_order.hpp"
#include "backends/interpreter/kernels.hpp"
#include "backends/program.hpp"
#include "backends/sequences.hpp"
#include "graph/ops/scalar_functions.hpp"
#include "tensor/numerics.hpp"

namespace pw::test {
namespace ordered {

using Floats = std::vector<float>;

inline float larger(float a, float b) { return a != a || a > b ? a : b; }
constexpr float kLog2E = 1.44269504F;

/// Returns the exact value that ex2.approx.ftz.f32 approximates.
inline float power2(float x) {
  const auto y = static_cast<float>(std::exp2(static_cast<double>(x)));
  return y < std::numeric_limits<float>::min() ? 0.0F : y;
}
/// The initial base, before any key.
constexpr float kNoBase = std::numeric_limits<float>::lowest();
/// Weights up to this power of two are not rescaled.
constexpr float kMostPower = 8;
inline bool outgrown(float base, float largest, float factor) {
  return !(std::fma(largest, factor, -(base * factor)) <= kMostPower);
}
inline float shrink(float before, float after, float factor) {
  return before == after ? 1.0F : power2(std::fma(before, factor, -(after * factor)));
}

/// One query row and the keys it sees.
struct OrderedRow {
  const float *q, *k, *v;
  std::int64_t step, seen, width;
  DType dtype;   ///< dtype of the operands, to which weights are rounded
  float factor;  ///< the scale, times log2 e
};

struct Strand {
  float base = kNoBase;  ///< the score whose weight is 1
  std::array<float, 4> totals{};
  Floats sums;

  void block(const OrderedRow& row, std::int64_t begin, std::int64_t end) {
    Floats weights;
    float largest = -INFINITY;
    for (std::int64_t j = begin; j < end; ++j) {
      float dot = 0;
      for (std::int64_t d = 0; d < row.width; ++d)
        dot = std::fma(row.q[d], row.k[j * row.step + d], dot);
      weights.push_back(dot);
      largest = larger(largest, weights.back());
    }
    if (outgrown(base, largest, row.factor)) {
      const float grown = shrink(base, largest, row.factor);
      base = largest;
      for (float& x : totals) x *= grown;
      for (float& x : sums) x *= grown;
    }
    const float down = base * row.factor;
    for (std::int64_t j = begin; j < end; ++j) {
      float& weight = weights[static_cast<std::size_t>(j - begin)];
      weight = power2(std::fma(weight, row.factor, -down));
      totals[static_cast<std::size_t>((j - begin) % 8 / 2)] += weight;
      std::array<std::byte, 2> rounded{};
      store(row.dtype, rounded.data(), 0, static_cast<double>(weight));
      const auto narrow = static_cast<float>(load(row.dtype, rounded.data(), 0));
      for (std::int64_t d = 0; d < row.width; ++d)
        sums[static_cast<std::size_t>(d)] =
            std::fma(narrow, row.v[j * row.step + d], sums[static_cast<std::size_t>(d)]);
    }
  }
  [[nodiscard]] float weights() const { return (totals[0] + totals[1]) + (totals[2] + totals[3]); }
};

/// Merges several rows in ascending order: sums, the sum of weights and the largest base.
struct AddedUp {
  float base = kNoBase, total = 0;
  Floats sums;

  template <class Each>
  static AddedUp of(const std::vector<Each>& all, float factor, std::int64_t width) {
    AddedUp out;
    out.sums.assign(static_cast<std::size_t>(width), 0.0F);
    for (const Each& e : all) out.base = larger(out.base, e.base);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float grown = shrink(all[i].base, out.base, factor);
      const float add = all[i].weights() * grown;
      out.total = i == 0 ? add : out.total + add;
      for (std::size_t d = 0; d < out.sums.size(); ++d) {
        const float x = all[i].sums[d] * grown;
        out.sums[d] = i == 0 ? x : out.sums[d] + x;
      }
    }
    return out;
  }
  [[nodiscard]] float weights() const { return total; }
};

inline void attend_in_order(const OrderedRow& row, const AttentionOrder& order, float* out) {
  std::vector<AddedUp> parts;
  for (int part = 0; part < order.parts; ++part) {
    std::vector<Strand> strands(static_cast<std::size_t>(order.strands));
    for (Strand& s : strands) s.sums.assign(static_cast<std::size_t>(row.width), 0.0F);
    for (std::int64_t begin = 0, b = 0; begin < row.seen; begin += order.keys, ++b)
      if (b / order.strands % order.parts == part)
        strands[static_cast<std::size_t>(b % order.strands)].block(
            row, begin, std::min(begin + order.keys, row.seen));
    parts.push_back(AddedUp::of(strands, row.factor, row.width));
  }
  const AddedUp all = order.parts == 1 ? parts.front() : AddedUp::of(parts, row.factor, row.width);
  const float share = 1 / all.total;
  for (std::int64_t d = 0; d < row.width; ++d)
    out[d] = all.sums[static_cast<std::size_t>(d)] * share;
}

inline Status ordered_attention(Call& call, const AttentionOrder& order) {
  const Array& query = call.operand(0);
  const std::int64_t heads = query.extents[1], width = query.extents[2],
                     groups = call.operand(1).extents[1];
  const auto keys = seen_keys(call);
  if (!keys) return tl::unexpected(keys.error());
  const Floats q = elements_of<float>(query), k = elements_of<float>(keys->k),
               v = elements_of<float>(keys->v);
  const bool divided = call.operands.size() > 3 && call.operands[3] != nullptr;
  const float divisor = divided ? elements_of<float>(call.operand(3))[0] : 1.0F;
  Floats out(q.size(), 0.0F);
  for (std::size_t s = 0; s < keys->keys.size(); ++s) {
    const RowSpan& rows = keys->queries[s];
    for (std::int64_t i = rows.begin * heads; i < rows.end * heads; ++i) {
      const std::int64_t head = i % heads;
      const auto first = static_cast<std::size_t>(
          (keys->keys[s].begin * groups + head / (heads / groups)) * width);
      float* const y = &out[static_cast<std::size_t>(i * width)];
      attend_in_order({&q[static_cast<std::size_t>(i * width)], &k[first], &v[first],
                       groups * width, keys->past(s) + i / heads - rows.begin + 1, width,
                       call.operand_dtype(0), 1 / std::sqrt(static_cast<float>(width)) * kLog2E},
                      order, y);
      for (std::int64_t d = 0; d < width && divided; ++d) y[d] /= divisor;
    }
  }
  Array& y = call.result();
  store_declared(call.result_dtype(), y, 0, 1, y.count(), out.data());
  return {};
}

class Interpreter final : public Backend {
 public:
  explicit Interpreter(const AttentionOrder& order) : order_(order) {}
  [[nodiscard]] std::string name() const override { return "interpreter"; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph& piece) override {
    Engine engine{"interpreter", single_kernels(), [](DType declared) { return declared; }};
    engine.special = [order = order_](const Graph& graph, NodeId node) -> RunCall {
      if (graph.op_of(node).primitive != Primitive::unified_attention ||
          graph.op_of(node).has_body())
        return {};
      const auto dtype = [&](std::size_t i) {
        return graph.context().types[graph.type(graph.operand(node, i))].dtype;
      };
      const bool halves = dtype(0) == DType::bf16 || dtype(0) == DType::f16;
      if (!halves || dtype(1) != dtype(0) || dtype(2) != dtype(0)) return {};
      return [order](Call& call) { return ordered_attention(call, order); };
    };
    return compile_program(piece, engine);
  }

 private:
  AttentionOrder order_;
};

}  // namespace ordered

/// Returns the single-precision interpreter with its unified_attention replaced by this order.
inline std::unique_ptr<Backend> make_interpreter(const AttentionOrder& order) {
  return std::make_unique<ordered::Interpreter>(order);
}

}  // namespace pw::test
