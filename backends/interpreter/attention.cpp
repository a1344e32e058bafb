#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "backends/interpreter/kernels.hpp"
#include "graph/ops/scalar_functions.hpp"

namespace pw {
namespace {

template <class Real>
std::vector<Real> numbers_of(const Call& call, std::size_t operand) {
  if (operand >= call.operands.size() || call.operands[operand] == nullptr) return {};
  return elements_of<Real>(call.operand(operand));
}

/// Operands q, k, v from `first` on, and the mask, in row-major order.
template <class Real>
struct AttentionCall {
  std::vector<Real> q, k, v, mask;
  bool truth = false, causal = false;  ///< the mask is b8
  std::int64_t heads, key_heads, queries, keys, width, value_width, planes = 1;
  Real scale;

  AttentionCall(const Call& call, std::size_t first, std::size_t mask_at)
      : q(numbers_of<Real>(call, first)),
        k(numbers_of<Real>(call, first + 1)),
        v(numbers_of<Real>(call, first + 2)),
        mask(numbers_of<Real>(call, mask_at)),
        truth(!mask.empty() && call.operand_dtype(mask_at) == DType::b8),
        causal(call.integer("causal", 0) != 0) {
    const Extents& e = call.operand(first).extents;
    const std::size_t at = e.size() - 3;
    heads = e[at];
    queries = e[at + 1];
    width = e[at + 2];
    key_heads = call.operand(first + 1).extents[at];
    keys = call.operand(first + 1).extents[at + 1];
    value_width = call.operand(first + 2).extents[at + 2];
    for (std::size_t i = 0; i <= at; ++i) planes *= e[i];
    scale = static_cast<Real>(call.real("scale", 1 / std::sqrt(static_cast<double>(width))));
  }
  [[nodiscard]] bool divides() const { return key_heads > 0 ? heads % key_heads == 0 : heads == 0; }
  /// Returns the first row of the keys that a plane of queries reads.
  [[nodiscard]] std::int64_t first_key(std::int64_t plane) const {
    return (plane / heads * key_heads + plane % heads / (heads / key_heads)) * keys;
  }
  /// Returns the scores of query row `row`, counted over all planes, with each key.
  std::vector<Real> scores(std::int64_t row) const {
    const std::int64_t query = row % queries, first = first_key(row / queries);
    std::vector<Real> out(static_cast<std::size_t>(keys));
    for (std::int64_t j = 0; j < keys; ++j) {
      Real dot = 0;
      for (std::int64_t d = 0; d < width; ++d)
        dot += q[static_cast<std::size_t>(row * width + d)] *
               k[static_cast<std::size_t>((first + j) * width + d)];
      Real score = dot * scale;
      const Real given = mask.empty() ? Real(0) : mask[static_cast<std::size_t>(row * keys + j)];
      if (!truth) score += given;
      if ((causal && j > query) || (truth && given == 0)) score = -INFINITY;
      out[static_cast<std::size_t>(j)] = score;
    }
    return out;
  }
};

tl::unexpected<Diagnostics> heads_do_not_fit(const Call& call, std::int64_t heads,
                                             std::int64_t key_heads) {
  return fail_call(
      call, "PW1203",
      fmt::format("{} query heads are not a multiple of {} key heads", heads, key_heads));
}

/// Replaces a row by exponentials relative to the largest; returns the logarithm of their sum.
template <class Real>
Real weigh(std::vector<Real>& row) {
  Real largest = -INFINITY, total = 0;
  for (Real x : row) largest = x > largest || x != x ? x : largest;
  if (largest == -INFINITY) largest = 0;
  for (Real& x : row) total += x = scalar::exp::of(x - largest);
  for (Real& x : row) x = total == 0 ? Real(0) : x / total;
  return total == 0 ? Real(0) : largest + static_cast<Real>(std::log(total));
}

template <class Real>
Status scaled_attention(Call& call) {
  const AttentionCall<Real> c(call, 0, 3);
  if (!c.divides()) return heads_do_not_fit(call, c.heads, c.key_heads);
  Array &y = call.result(0), &lse = call.result(1);
  std::vector<Real> out(static_cast<std::size_t>(c.value_width));
  for (std::int64_t row = 0; row < c.planes * c.queries; ++row) {
    std::vector<Real> weights = c.scores(row);
    Real sum = weigh(weights);
    for (std::int64_t d = 0; d < c.value_width; ++d) {
      Real total = 0;
      for (std::int64_t j = 0; j < c.keys; ++j)
        total +=
            weights[static_cast<std::size_t>(j)] *
            c.v[static_cast<std::size_t>((c.first_key(row / c.queries) + j) * c.value_width + d)];
      out[static_cast<std::size_t>(d)] = total;
    }
    store_declared(call.result_dtype(0), y, row * c.value_width, 1, c.value_width, out.data());
    store_declared(call.result_dtype(1), lse, row, 1, 1, &sum);
  }
  return {};
}

template <class Real>
struct AttentionGradients {
  std::vector<Real> dq, dk, dv;
};

/// Adds the contribution of one query row to all three gradients.
template <class Real>
void add_row(const AttentionCall<Real>& c, const std::vector<Real>& dy, const std::vector<Real>& y,
             Real lse, std::int64_t row, AttentionGradients<Real>& out) {
  const std::vector<Real> scores = c.scores(row);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  Real inner = 0;
  for (std::int64_t d = 0; d < c.value_width; ++d)
    inner += dy[at(row * c.value_width + d)] * y[at(row * c.value_width + d)];
  for (std::int64_t j = 0; j < c.keys; ++j) {
    const std::int64_t key = c.first_key(row / c.queries) + j;
    const Real weight = scalar::exp::of(scores[at(j)] - lse);
    Real along = 0;
    for (std::int64_t d = 0; d < c.value_width; ++d) {
      along += dy[at(row * c.value_width + d)] * c.v[at(key * c.value_width + d)];
      out.dv[at(key * c.value_width + d)] += weight * dy[at(row * c.value_width + d)];
    }
    const Real change = weight * (along - inner) * c.scale;
    for (std::int64_t d = 0; d < c.width; ++d) {
      out.dq[at(row * c.width + d)] += change * c.k[at(key * c.width + d)];
      out.dk[at(key * c.width + d)] += change * c.q[at(row * c.width + d)];
    }
  }
}

template <class Real>
Status scaled_attention_gradient(Call& call) {
  const AttentionCall<Real> c(call, 1, 6);
  if (!c.divides()) return heads_do_not_fit(call, c.heads, c.key_heads);
  const std::vector<Real> dy = numbers_of<Real>(call, 0), y = numbers_of<Real>(call, 4),
                          lse = numbers_of<Real>(call, 5);
  AttentionGradients<Real> out{std::vector<Real>(c.q.size()), std::vector<Real>(c.k.size()),
                               std::vector<Real>(c.v.size())};
  for (std::int64_t row = 0; row < c.planes * c.queries; ++row)
    add_row(c, dy, y, lse[static_cast<std::size_t>(row)], row, out);
  std::vector<Real>* const all[] = {&out.dq, &out.dk, &out.dv};
  for (std::size_t i = 0; i < 3; ++i) {
    Array& to = call.result(i);
    store_declared(call.result_dtype(i), to, 0, 1, to.count(), all[i]->data());
  }
  return {};
}

template <class Real>
constexpr KernelEntry kScaledAttention[] = {
    {Primitive::scaled_attention, scaled_attention<Real>},
    {Primitive::scaled_attention_gradient, scaled_attention_gradient<Real>}};

}  // namespace

template <class Real>
KernelTable interpreter_attention() {
  return kScaledAttention<Real>;
}
template KernelTable interpreter_attention<float>();
template KernelTable interpreter_attention<double>();

}  // namespace pw
