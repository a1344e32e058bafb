// This file is compiled several times, with PW_GEMM naming the variant, as gemm_kernel.cpp is. It
// processes keys in blocks with an online softmax, so only one block of scores is stored.
#define PW_JOIN_(a, b) a##b
#define PW_JOIN(a, b) PW_JOIN_(a, b)
#define Eigen PW_JOIN(Eigen_, PW_GEMM)
#define EIGEN_DONT_PARALLELIZE
#include "backends/cpu/attention_kernel.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <limits>

namespace pw::PW_GEMM {
namespace {

using Block = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const Block, 0, Eigen::OuterStride<>>;
using Column = Eigen::Array<float, Eigen::Dynamic, 1>;
constexpr std::int64_t kKeys = 256;

}  // namespace

void attend_block(const AttentionBlock& b) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const View q(b.q, b.rows, b.width, Eigen::OuterStride<>(b.q_step));
  const std::int64_t keys = b.seen + b.rows - 1;
  Column largest = Column::Constant(b.rows, kNone), total = Column::Zero(b.rows);
  Block sum = Block::Zero(b.rows, b.width), scores;
  for (std::int64_t first = 0; first < keys; first += kKeys) {
    const std::int64_t count = std::min(kKeys, keys - first);
    const View k(b.k + first * b.kv_step, count, b.width, Eigen::OuterStride<>(b.kv_step));
    const View v(b.v + first * b.kv_step, count, b.width, Eigen::OuterStride<>(b.kv_step));
    scores.resize(b.rows, count);
    scores.noalias() = q * k.transpose();
    for (std::int64_t row = 0; row < b.rows; ++row) {
      auto all = scores.row(row).array();
      const std::int64_t seen = std::clamp<std::int64_t>(b.seen + row - first, 0, count);
      if (seen == 0) {
        all.setZero();
        continue;
      }
      auto own = all.head(seen);
      own *= b.scale;
      const float before = largest(row);
      const float now = std::max(before, own.maxCoeff());
      own = (own - now).exp();
      all.tail(count - seen).setZero();
      const float keep = before == now ? 1.0f : std::exp(before - now);
      total(row) = total(row) * keep + own.sum();
      if (keep != 1.0f) sum.row(row) *= keep;
      largest(row) = now;
    }
    // A key that a row does not see adds nothing, not even zero times NaN.
    if (b.seen - first >= count || v.allFinite()) {
      sum.noalias() += scores * v;
      continue;
    }
    for (std::int64_t row = 0; row < b.rows; ++row) {
      const std::int64_t seen = std::clamp<std::int64_t>(b.seen + row - first, 0, count);
      sum.row(row).noalias() += scores.row(row).head(seen) * v.topRows(seen);
    }
  }
  Eigen::Map<Block, 0, Eigen::OuterStride<>> out(b.out, b.rows, b.width,
                                                 Eigen::OuterStride<>(b.out_step));
  out = (sum.array().colwise() / (total * b.divisor)).matrix();
}

}  // namespace pw::PW_GEMM
