// Causal attention inside each sequence of the step with grouped heads. Scores, softmax and the
// weighted sum are in f32, one block of query rows at a time.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "backends/eager/curves.hpp"
#include "backends/eager/kernels.hpp"
#include "backends/sequences.hpp"
#include "tensor/parallel.hpp"

namespace pw::eager {
namespace {

using Block = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using HeadView = Eigen::Map<const Block, 0, Eigen::OuterStride<>>;
using HeadTarget = Eigen::Map<Block, 0, Eigen::OuterStride<>>;
constexpr std::int64_t kQueries = 64;

struct Heads {
  std::vector<float> q, k, v, out;
  std::int64_t heads, kv_heads, width;
  float divisor;
};

HeadView rows_of(const std::vector<float>& x, std::int64_t begin, std::int64_t rows,
                 std::int64_t heads, std::int64_t head, std::int64_t width) {
  return {x.data() + (begin * heads + head) * width, rows, width,
          Eigen::OuterStride<>(heads * width)};
}

/// Computes softmax over the first `keys` scores of a row and zeroes the rest.
void softmax(Block& scores, Eigen::Index row, Eigen::Index keys) {
  auto seen = scores.row(row).head(keys).array();
  const float largest = seen.maxCoeff<Eigen::PropagateNaN>();
  seen -= largest;
  float* const weights = scores.data() + row * scores.cols();
  curves().exp(weights, keys, weights);
  const float total = std::accumulate(weights, weights + keys, 0.0f);
  seen /= total;
  scores.row(row).tail(scores.cols() - keys).setZero();
}

/// The rows of one sequence: its queries and the keys they see, earlier tokens first.
struct Rows {
  RowSpan queries, keys;
  std::int64_t past = 0;  ///< keys before those of the first query
};

/// Query rows [first, first + rows) of a sequence, one head.
void attend(Heads& h, const Rows& sequence, std::int64_t first, std::int64_t rows,
            std::int64_t head) {
  const std::int64_t seen = sequence.past + first - sequence.queries.begin;  // before `first`
  const std::int64_t kv = head / (h.heads / h.kv_heads), keys = seen + rows;
  const HeadView q = rows_of(h.q, first, rows, h.heads, head, h.width);
  const HeadView k = rows_of(h.k, sequence.keys.begin, keys, h.kv_heads, kv, h.width);
  const HeadView v = rows_of(h.v, sequence.keys.begin, keys, h.kv_heads, kv, h.width);
  Block scores = q * k.transpose();
  scores *= 1 / std::sqrt(static_cast<float>(h.width));
  for (Eigen::Index row = 0; row < rows; ++row) softmax(scores, row, seen + row + 1);
  HeadTarget out(h.out.data() + (first * h.heads + head) * h.width, rows, h.width,
                 Eigen::OuterStride<>(h.heads * h.width));
  // A key that a row does not see adds nothing, not even zero times NaN.
  if (rows == 1 || v.allFinite()) {
    out.noalias() = scores * v;
  } else {
    for (Eigen::Index row = 0; row < rows; ++row)
      out.row(row).noalias() = scores.row(row).head(seen + row + 1) * v.topRows(seen + row + 1);
  }
  if (h.divisor != 1) out /= h.divisor;
}

void attend_sequence(Heads& h, const Rows& sequence) {
  const RowSpan& queries = sequence.queries;
  const std::int64_t grain = sequence.keys.end - sequence.keys.begin > 32 ? 1 : h.heads;
  parallel_for(h.heads, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      for (std::int64_t first = queries.begin; first < queries.end; first += kQueries) {
        attend(h, sequence, first, std::min(kQueries, queries.end - first), head);
      }
    }
  });
}

Status unified_attention(Call& call) {
  const Array& query = call.operand(0);
  const auto keys = seen_keys(call);
  if (!keys) return tl::unexpected(keys.error());
  Heads h{elements_of<float>(query),
          elements_of<float>(keys->k),
          elements_of<float>(keys->v),
          {},
          query.extents[1],
          keys->k.extents[1],
          query.extents[2],
          1};
  if (h.kv_heads == 0 || h.heads % h.kv_heads != 0) {
    return fail_call(
        call, "PW1203",
        fmt::format("{} query heads are not a multiple of {} key heads", h.heads, h.kv_heads));
  }
  if (call.operands.size() > 3 && call.operands[3] != nullptr)
    h.divisor = elements_of<float>(call.operand(3))[0];
  h.out.assign(h.q.size(), 0.0f);  // padding rows become zero
  for (std::size_t s = 0; s < keys->keys.size(); ++s)
    attend_sequence(h, {keys->queries[s], keys->keys[s], keys->past(s)});
  Array& y = call.result();
  store_run(y.dtype, y.data, 1, y.count(), h.out.data());
  return {};
}

constexpr KernelEntry kAttention[] = {{Primitive::unified_attention, unified_attention}};

}  // namespace

KernelTable attention() { return kAttention; }

}  // namespace pw::eager
