// FlashAttention's loop order on a CPU: a block of scores at a time, with the running maximum and
// sum of each row (Milakov and Gimelshein, 2018, arXiv:1805.02867; Dao et al., 2022,
// arXiv:2205.14135). Computes in f32, and f64 operands in f64.
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "backends/eager/attention_sizes.hpp"
#include "backends/eager/curves.hpp"
#include "backends/eager/kernels.hpp"
#include "backends/eager/tiled_attention.hpp"
#include "tensor/linalg/choices.hpp"
#include "tensor/linalg/gemm.hpp"
#include "tensor/linalg/torch_kernels.hpp"
#include "tensor/parallel.hpp"

namespace pw::eager {
namespace {

constexpr std::int64_t kQueryRows = 128, kKeyRows = 512, kScoresWorthAThread = 1 << 14;
template <class T>
using Scores = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Column = Eigen::Array<T, Eigen::Dynamic, 1>;
template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

Matrix rows_at(const Array& x, std::int64_t begin, std::int64_t rows) {
  return {x.dtype, x.at(begin * x.strides[0]), rows, x.extents[1], x.strides[0], x.strides[1]};
}
Matrix turned(const Matrix& m) {
  return {m.dtype, m.data, m.columns, m.rows, m.column_step, m.row_step};
}
template <class T>
Matrix matrix_of_scores(const Scores<T>& x) {
  return {
      kStoredAs<T>, reinterpret_cast<const std::byte*>(x.data()), x.rows(), x.cols(), x.cols(), 1};
}
/// Contiguous rows in the compute type; the rows themselves if they already are. The borrowed
/// kernels (torch_kernels.hpp, blas.hpp) read them.
template <class T>
Matrix packed(const Matrix& m, Scores<T>& scratch) {
  if (m.dtype == kStoredAs<T> && m.column_step == 1 && m.row_step == m.columns) return m;
  scratch.resize(m.rows, m.columns);
  for (std::int64_t i = 0; i < m.rows; ++i)
    load_run(m.dtype, m.data + i * m.row_step * size_of(m.dtype), m.column_step, m.columns,
             scratch.data() + i * m.columns);
  return matrix_of_scores(scratch);
}

void exp_of(Scores<float>& x) { curves().exp(x.data(), x.size(), x.data()); }
// Not Eigen's, of which exp(-inf) is not 0.
void exp_of(Scores<double>& x) {
  x = x.unaryExpr([](double score) { return std::exp(score); });
}

/// A block of queries and keys.
struct ScoreBlock {
  std::int64_t query, queries, key, keys;
};

template <class T>
void apply_mask(const Array& mask, const ScoreBlock& block, Scores<T>& scores) {
  std::vector<T> row(static_cast<std::size_t>(block.keys));
  for (std::int64_t i = 0; i < block.queries; ++i) {
    load_run(mask.dtype, mask.at((block.query + i) * mask.strides[0] + block.key * mask.strides[1]),
             mask.strides[1], block.keys, row.data());
    for (std::int64_t j = 0; j < block.keys; ++j) {
      T& score = scores(i, j);
      const T given = row[static_cast<std::size_t>(j)];
      if (mask.dtype != DType::b8)
        score += given;
      else if (given == 0)
        score = kNever<T>;
    }
  }
}

/// Computes scores = q · kᵀ · scale, masked.
template <class T>
void score(const AttentionSizes& sizes, const Matrix& q, const Matrix& k, const Array* mask,
           const ScoreBlock& block, Scores<T>& scores) {
  scores.resize(block.queries, block.keys);
  gemm(q, turned(k), scores.data());
  scores *= static_cast<T>(sizes.scale);
  if (mask != nullptr) apply_mask(*mask, block, scores);
  if (!sizes.causal || block.key + block.keys <= block.query + 1) return;
  for (std::int64_t i = 0; i < block.queries; ++i) {
    const std::int64_t seen =
        std::clamp<std::int64_t>(block.query + i + 1 - block.key, 0, block.keys);
    scores.row(i).tail(block.keys - seen).setConstant(kNever<T>);
  }
}

/// Rows of results during the loop over keys, not yet divided by their sums.
template <class T>
struct RunningSoftmax {
  Scores<T> sum_of_values;
  Column<T> largest, total;

  void start(std::int64_t rows, std::int64_t width) {
    sum_of_values.setZero(rows, width);
    largest.setConstant(rows, kNever<T>);
    total.setZero(rows);
  }
  /// Replaces the scores by exponentials relative to the largest score so far.
  void weigh(Scores<T>& scores) {
    for (Eigen::Index i = 0; i < scores.rows(); ++i) {
      const T here = scores.row(i).template maxCoeff<Eigen::PropagateNaN>();
      const T most = here > largest(i) || std::isnan(here) ? here : largest(i);
      const T from = most == kNever<T> ? T(0) : most;  // no visible key: exp(-inf) is 0
      const T factor = std::exp(largest(i) - from);
      sum_of_values.row(i) *= factor;
      total(i) *= factor;
      largest(i) = most;
      scores.row(i) -= from;
    }
    exp_of(scores);
    total += scores.rowwise().sum();
  }
};

template <class T>
struct AttentionScratch {
  Scores<T> scores, queries, keys, values, part;
  RunningSoftmax<T> running;
};

/// Computes one block of queries of one head.
template <class T>
void attend_block(Call& call, const AttentionSizes& sizes, std::int64_t plane, std::int64_t first,
                  AttentionScratch<T>& s) {
  const std::int64_t rows = std::min(kQueryRows, sizes.queries - first);
  const std::int64_t key_plane =
      plane / sizes.heads * sizes.key_heads + plane % sizes.heads / sizes.group();
  const Array q = plane_of(call.operand(0), plane, 2), k = plane_of(call.operand(1), key_plane, 2),
              v = plane_of(call.operand(2), key_plane, 2);
  const bool masked = call.operands.size() > 3 && call.operands[3] != nullptr;
  const Array mask = masked ? plane_of(call.operand(3), plane, 2) : Array();
  s.running.start(rows, sizes.value_width);
  const Matrix queries = packed(rows_at(q, first, rows), s.queries);
  for (std::int64_t key = 0; key < sizes.seen(first + rows); key += kKeyRows) {
    const ScoreBlock block{first, rows, key, std::min(kKeyRows, sizes.seen(first + rows) - key)};
    score(sizes, queries, packed(rows_at(k, key, block.keys), s.keys), masked ? &mask : nullptr,
          block, s.scores);
    s.running.weigh(s.scores);
    s.part.resize(rows, sizes.value_width);
    gemm(matrix_of_scores(s.scores), packed(rows_at(v, key, block.keys), s.values), s.part.data());
    s.running.sum_of_values += s.part;
  }
  const Column<T> sums = (s.running.total == T(0)).select(T(1), s.running.total);
  s.running.sum_of_values.colwise() /= sums;
  s.running.largest = (s.running.total == T(0)).select(T(0), s.running.largest + sums.log());
  const std::int64_t row = plane * sizes.queries + first;
  const Array &y = call.results[0], &lse = call.results[1];
  store_run(y.dtype, y.at(row * sizes.value_width), 1, rows * sizes.value_width,
            s.running.sum_of_values.data());
  store_run(lse.dtype, lse.at(row), 1, rows, s.running.largest.data());
}

template <class T>
Status run_attention(Call& call) {
  const AttentionSizes sizes = sizes_of(call, 0);
  if (auto fits = check_heads(call, sizes); !fits) return fits;
  call.result(0);
  call.result(1);
  const std::int64_t blocks = (sizes.queries + kQueryRows - 1) / kQueryRows;
  const std::int64_t work = std::min(sizes.queries, kQueryRows) * sizes.keys + 1;
  parallel_for(sizes.planes() * blocks, 1 + kScoresWorthAThread / work,
               [&](std::int64_t begin, std::int64_t end) {
                 AttentionScratch<T> scratch;
                 for (std::int64_t i = begin; i < end; ++i)
                   attend_block(call, sizes, i / blocks, i % blocks * kQueryRows, scratch);
               });
  return {};
}

/// Runs the fastest of PyTorch's kernel, ours by tiles, and ours by products of matrices, which
/// packs no keys and suits few queries.
Status attend_fastest(Call& call, const AttentionSizes& sizes) {
  constexpr std::string_view kTiles = kOwnKernel, kProducts = "Piecewise, products";
  static constexpr std::array<std::string_view, 3> kTorchFirst{kTorchKernel, kTiles, kProducts},
      kTilesFirst{kTiles, kTorchKernel, kProducts};
  const Array &q = call.operand(0), &k = call.operand(1), &v = call.operand(2);
  const bool masked = call.operands.size() > 3 && call.operands[3] != nullptr,
             narrow = q.dtype == DType::bf16;
  const auto& kernels = narrow ? kTorchFirst : kTilesFirst;
  const KernelClass operands{
      narrow ? "attention of bf16" : "attention of f32",
      {sizes.planes(), sizes.queries, sizes.keys, sizes.width, sizes.key_heads},
      {sizes.causal ? "causal"
       : masked     ? "masked"
                    : "",
       q.strides.end()[-2] == sizes.width ? "" : "heads by columns"},
      2 * sizes.planes() * sizes.queries * sizes.keys * sizes.width};
  Status status;
  run_fastest(operands, kernels, [&](std::size_t i) {
    if (kernels[i] == kTorchKernel)
      return !masked &&
             lent_attention(q, k, v, sizes.causal, sizes.scale, call.results[0], call.results[1]);
    if (kernels[i] == kTiles)
      attend_by_tiles(call, sizes);
    else
      status = run_attention<float>(call);
    return true;
  });
  return status;
}

Status scaled_attention_kernel(Call& call) {
  if (call.operand_dtype(0) == DType::f64) return run_attention<double>(call);
  const AttentionSizes sizes = sizes_of(call, 0);
  if (auto fits = check_heads(call, sizes); !fits) return fits;
  call.result(0);
  call.result(1);
  return attend_fastest(call, sizes);
}

/// Computes the gradients of one key head and of the queries that read it.
template <class T>
class AttentionGradient {
 public:
  AttentionGradient(Call& call, const AttentionSizes& sizes, std::int64_t key_plane)
      : call_(call),
        sizes_(sizes),
        k_(plane_of(call.operand(2), key_plane, 2)),
        v_(plane_of(call.operand(3), key_plane, 2)),
        key_plane_(key_plane) {}

  void run() {
    dk_.setZero(sizes_.keys, sizes_.width);
    dv_.setZero(sizes_.keys, sizes_.value_width);
    const std::int64_t first = key_plane_ / sizes_.key_heads * sizes_.heads +
                               key_plane_ % sizes_.key_heads * sizes_.group();
    for (std::int64_t plane = first; plane < first + sizes_.group(); ++plane)
      for (std::int64_t row = 0; row < sizes_.queries; row += kQueryRows) of_queries(plane, row);
    store(1, key_plane_ * sizes_.keys, dk_);
    store(2, key_plane_ * sizes_.keys, dv_);
  }

 private:
  void of_queries(std::int64_t plane, std::int64_t first) {
    const std::int64_t rows = std::min(kQueryRows, sizes_.queries - first);
    const Matrix dy = read(0, plane, first, rows, dy_), q = read(1, plane, first, rows, q_);
    const Matrix y = read(4, plane, first, rows, y_);
    copy_to(dy, dy_copy_);
    copy_to(y, y_copy_);
    inner_ = (dy_copy_ * y_copy_).rowwise().sum();
    const Array lse = plane_of(call_.operand(5), plane, 1);
    lse_.resize(rows);
    load_run(lse.dtype, lse.at(first * lse.strides[0]), lse.strides[0], rows, lse_.data());
    dq_.setZero(rows, sizes_.width);
    for (std::int64_t key = 0; key < sizes_.seen(first + rows); key += kKeyRows)
      of_block(plane, {first, rows, key, std::min(kKeyRows, sizes_.seen(first + rows) - key)}, q,
               dy);
    store(0, plane * sizes_.queries + first, dq_);
  }

  void of_block(std::int64_t plane, const ScoreBlock& block, const Matrix& q, const Matrix& dy) {
    const bool masked = call_.operands.size() > 6 && call_.operands[6] != nullptr;
    const Array mask = masked ? plane_of(call_.operand(6), plane, 2) : Array();
    const Matrix k = packed(rows_at(k_, block.key, block.keys), k_block_),
                 v = packed(rows_at(v_, block.key, block.keys), v_block_);
    score(sizes_, q, k, masked ? &mask : nullptr, block, weights_);
    // If no key is visible, lse is 0, and so is exp(-inf).
    weights_.colwise() -= lse_;
    exp_of(weights_);
    add_product(turned(matrix_of_scores(weights_)), dy, block.key, dv_);
    d_weights_.resize(block.queries, block.keys);
    gemm(dy, turned(v), d_weights_.data());
    d_weights_.colwise() -= inner_;
    d_weights_ *= weights_ * static_cast<T>(sizes_.scale);
    add_product(matrix_of_scores(d_weights_), k, 0, dq_);
    add_product(turned(matrix_of_scores(d_weights_)), q, block.key, dk_);
  }

  void add_product(const Matrix& a, const Matrix& b, std::int64_t row, Scores<T>& to) {
    part_.resize(a.rows, b.columns);
    gemm(a, b, part_.data());
    to.middleRows(row, a.rows) += part_;
  }
  Matrix read(std::size_t operand, std::int64_t plane, std::int64_t first, std::int64_t rows,
              Scores<T>& scratch) {
    return packed(rows_at(plane_of(call_.operand(operand), plane, 2), first, rows), scratch);
  }
  static void copy_to(const Matrix& m, Scores<T>& out) {
    out.resize(m.rows, m.columns);
    for (std::int64_t i = 0; i < m.rows; ++i)
      load_run(m.dtype, m.data + i * m.row_step * size_of(m.dtype), m.column_step, m.columns,
               out.data() + i * m.columns);
  }
  void store(std::size_t result, std::int64_t row, const Scores<T>& values) {
    const Array& to = call_.results[result];
    store_run(to.dtype, to.at(row * values.cols()), 1, values.size(), values.data());
  }

  Call& call_;
  const AttentionSizes& sizes_;
  Array k_, v_;
  std::int64_t key_plane_;
  Scores<T> dq_, dk_, dv_, q_, y_, dy_, y_copy_, dy_copy_, k_block_, v_block_, weights_, d_weights_,
      part_;
  Column<T> inner_, lse_;
};

template <class T>
Status run_gradient(Call& call) {
  const AttentionSizes sizes = sizes_of(call, 1);
  if (auto fits = check_heads(call, sizes); !fits) return fits;
  for (std::size_t i = 0; i < 3; ++i) call.result(i);
  const std::int64_t work = sizes.queries * sizes.keys * std::max<std::int64_t>(sizes.heads, 1) /
                            std::max<std::int64_t>(sizes.key_heads, 1);
  parallel_for(sizes.batch * sizes.key_heads, 1 + kScoresWorthAThread / (work + 1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   AttentionGradient<T>(call, sizes, i).run();
               });
  return {};
}
Status scaled_attention_gradient(Call& call) {
  return call.operand_dtype(1) == DType::f64 ? run_gradient<double>(call)
                                             : run_gradient<float>(call);
}

constexpr KernelEntry kScaledAttention[] = {
    {Primitive::scaled_attention, scaled_attention_kernel},
    {Primitive::scaled_attention_gradient, scaled_attention_gradient}};

}  // namespace

KernelTable scaled_attention() { return kScaledAttention; }

}  // namespace pw::eager
