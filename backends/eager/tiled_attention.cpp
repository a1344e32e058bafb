// Attention by tiles: FlashAttention's loop order on a CPU (Dao et al. 2022; online softmax of
// Milakov and Gimelshein 2018). A block of query rows visits the keys in blocks; each row has a
// running maximum and sum, and its results are rescaled when the maximum grows. Keys and values are
// packed once for each head into the panels of the matrix kernels, and scores keep the layout of
// their product tile until they are the left operand of the next product.
//
// Invariant: a query row's result depends only on its own row, the keys and the mask, not on the
// other rows of its block. Cost: 2 · keys · (width + value width) operations a row; memory for one
// block of scores, kQueryRows × kKeyRows, a thread.
#include "backends/eager/tiled_attention.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "tensor/linalg/panels.hpp"
#include "tensor/parallel.hpp"

namespace pw::eager {
namespace {

constexpr std::int64_t kQueryRows = 112, kKeyRows = 512, kScoresWorthAThread = 1 << 14;
constexpr float kNever = -std::numeric_limits<float>::infinity();

std::int64_t groups_of(std::int64_t count) { return (count + kPanelGroup - 1) / kPanelGroup; }

/// Packed keys of each head as columns, and its values as rows.
struct PackedKeys {
  std::vector<Panels> keys, values;
};

PackedKeys packed_keys(const Call& call, const AttentionSizes& sizes) {
  const auto planes = static_cast<std::size_t>(sizes.batch * sizes.key_heads);
  PackedKeys out{std::vector<Panels>(planes), std::vector<Panels>(planes)};
  const auto matrix = [](const Array& x) {
    return Matrix{x.dtype, x.data, x.extents[0], x.extents[1], x.strides[0], x.strides[1]};
  };
  const std::int64_t work = sizes.keys * (sizes.width + sizes.value_width) + 1;
  parallel_for(sizes.batch * sizes.key_heads, 1 + kScoresWorthAThread / work,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const Matrix k = matrix(plane_of(call.operand(1), i, 2));
                   const auto at = static_cast<std::size_t>(i);
                   out.keys[at] = panels_of(
                       Matrix{k.dtype, k.data, k.columns, k.rows, k.column_step, k.row_step});
                   out.values[at] = panels_of(matrix(plane_of(call.operand(2), i, 2)));
                 }
               });
  return out;
}

/// Processes blocks of queries on one thread.
class TiledAttention {
 public:
  TiledAttention(Call& call, const AttentionSizes& sizes, const PackedKeys& packed)
      : call_(call),
        sizes_(sizes),
        packed_(packed),
        wide_(panel_kernels().columns),
        row_(static_cast<std::size_t>(std::max({sizes.width, kKeyRows, sizes.value_width}))) {}

  /// Computes queries [first, first + rows) of a head.
  void run(std::int64_t plane, std::int64_t first, std::int64_t rows) {
    const std::int64_t key_plane =
        plane / sizes_.heads * sizes_.key_heads + plane % sizes_.heads / sizes_.group();
    keys_ = packed_.keys.data() + key_plane;
    values_ = packed_.values.data() + key_plane;
    first_ = first;
    masked_ = call_.operands.size() > 3 && call_.operands[3] != nullptr;
    if (masked_) mask_ = plane_of(call_.operand(3), plane, 2);
    tiles_ = tiles_of(0, rows);
    start(plane_of(call_.operand(0), plane, 2), rows);
    const std::int64_t seen = sizes_.seen(first + rows);
    for (std::int64_t key = 0; key < seen; key += kKeyRows)
      see(key, std::min(kKeyRows, seen - key));
    finish(plane * sizes_.queries + first, rows);
  }

 private:
  [[nodiscard]] std::int64_t depth() const { return groups_of(sizes_.width) * kPanelGroup; }
  [[nodiscard]] std::int64_t out_step() const { return values_->count() * wide_; }
  [[nodiscard]] float* scores_of(const Tile& tile) { return scores_.get() + tile.row * kKeyRows; }

  /// Loads and scales the queries, in groups.
  void start(const Array& q, std::int64_t rows) {
    if (!queries_) queries_ = aligned_floats(kQueryRows * depth());
    if (!scores_) scores_ = aligned_floats(kQueryRows * (kKeyRows + 2 * kPanelGroup));
    if (!sums_) sums_ = aligned_floats(kQueryRows * out_step());
    std::fill_n(queries_.get(), rows * depth(), 0.0f);
    std::fill_n(sums_.get(), rows * out_step(), 0.0f);
    largest_.assign(static_cast<std::size_t>(rows), kNever);
    total_.assign(static_cast<std::size_t>(rows), 0);
    factor_.assign(static_cast<std::size_t>(rows), 0);
    const auto scale = static_cast<float>(sizes_.scale);
    for (const Tile& tile : tiles_)
      for (std::int64_t r = 0; r < tile.rows; ++r) {
        load_run(q.dtype, q.at((first_ + tile.row + r) * q.strides[0]), q.strides[1], sizes_.width,
                 row_.data());
        float* const to = queries_.get() + tile.row * depth() + r * kPanelGroup;
        for (std::int64_t i = 0; i < sizes_.width; ++i)
          to[i / kPanelGroup * tile.rows * kPanelGroup + i % kPanelGroup] =
              row_[static_cast<std::size_t>(i)] * scale;
      }
  }

  /// Adds the next block of keys.
  void see(std::int64_t key, std::int64_t keys) {
    score(key, keys);
    const std::int64_t step = out_step();
    for (const Tile& tile : tiles_) {
      hide(tile, key, keys);
      const auto row = static_cast<std::size_t>(tile.row);
      panel_kernels().weigh({scores_of(tile), tile.rows, groups_of(keys), &largest_[row],
                             &total_[row], &factor_[row]});
      for (std::int64_t r = 0; key > 0 && r < tile.rows; ++r) {
        const float factor = factor_[row + static_cast<std::size_t>(r)];
        float* const sums = sums_.get() + (tile.row + r) * step;
        for (std::int64_t i = 0; factor != 1 && i < step; ++i) sums[i] *= factor;
      }
    }
    for (std::int64_t p = 0; p < values_->count(); ++p)
      for (const Tile& tile : tiles_) {
        PanelTile t{};
        t.a = scores_of(tile);
        t.b = values_->panel(p) + key * wide_;
        t.groups = groups_of(keys);
        t.c = sums_.get() + tile.row * step + p * wide_;
        t.step = step;
        t.half = wide_ / 2;
        t.add = key > 0;
        panel_kernels().tile(tile.rows, t);
      }
  }

  void score(std::int64_t key, std::int64_t keys) {
    for (std::int64_t column = 0; column < keys; column += wide_)
      for (const Tile& tile : tiles_) {
        const std::int64_t step = tile.rows * kPanelGroup;
        PanelTile t{};
        t.a = queries_.get() + tile.row * depth();
        t.b = keys_->panel((key + column) / wide_);
        t.groups = groups_of(sizes_.width);
        t.c = scores_of(tile) + column / kPanelGroup * step + column % kPanelGroup;
        t.step = kPanelGroup;
        t.half = wide_ / 2 == kPanelGroup ? step : wide_ / 2;
        panel_kernels().tile(tile.rows, t);
      }
  }

  /// Masks keys that the mask hides, later keys, and the padding of the last group.
  void hide(const Tile& tile, std::int64_t key, std::int64_t keys) {
    const std::int64_t step = tile.rows * kPanelGroup, padded = groups_of(keys) * kPanelGroup;
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      float* const scores = scores_of(tile) + r * kPanelGroup;
      const std::int64_t query = first_ + tile.row + r;
      if (masked_) {
        load_run(mask_.dtype, mask_.at(query * mask_.strides[0] + key * mask_.strides[1]),
                 mask_.strides[1], keys, row_.data());
        for (std::int64_t j = 0; j < keys; ++j) {
          float& score = scores[j / kPanelGroup * step + j % kPanelGroup];
          const float given = row_[static_cast<std::size_t>(j)];
          if (mask_.dtype != DType::b8)
            score += given;
          else if (given == 0)
            score = kNever;
        }
      }
      const std::int64_t seen =
          sizes_.causal ? std::clamp<std::int64_t>(query + 1 - key, 0, keys) : keys;
      for (std::int64_t j = seen; j < padded; ++j)
        scores[j / kPanelGroup * step + j % kPanelGroup] = kNever;
    }
  }

  void finish(std::int64_t row, std::int64_t rows) {
    const Array &y = call_.results[0], &lse = call_.results[1];
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto at = static_cast<std::size_t>(r);
      const bool none = total_[at] == 0;
      float* const sums = sums_.get() + r * out_step();
      const float divisor = none ? 1.0f : total_[at];
      for (std::int64_t i = 0; i < sizes_.value_width; ++i) sums[i] /= divisor;
      largest_[at] = none ? 0.0f : largest_[at] + std::log(divisor);
      store_run(y.dtype, y.at((row + r) * sizes_.value_width), 1, sizes_.value_width, sums);
    }
    store_run(lse.dtype, lse.at(row), 1, rows, largest_.data());
  }

  Call& call_;
  const AttentionSizes& sizes_;
  const PackedKeys& packed_;
  std::int64_t wide_;
  const Panels *keys_ = nullptr, *values_ = nullptr;
  std::int64_t first_ = 0;
  bool masked_ = false;
  Array mask_;
  std::vector<Tile> tiles_;
  std::shared_ptr<float> queries_, scores_, sums_;
  std::vector<float> largest_, total_, factor_, row_;
};

}  // namespace

void attend_by_tiles(Call& call, const AttentionSizes& sizes) {
  const PackedKeys packed = packed_keys(call, sizes);
  const std::int64_t most =
                         std::max<std::int64_t>((sizes.queries + kQueryRows - 1) / kQueryRows, 1),
                     rows = std::max<std::int64_t>((sizes.queries + most - 1) / most, 1),
                     blocks = (sizes.queries + rows - 1) / rows;
  const std::int64_t work = rows * sizes.keys + 1;
  parallel_for(
      sizes.planes() * blocks, 1 + kScoresWorthAThread / work,
      [&](std::int64_t begin, std::int64_t end) {
        TiledAttention attention(call, sizes, packed);
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i % blocks * rows;
          attention.run(i / blocks, first, std::min(rows, sizes.queries - first));
        }
      },
      1);
}

}  // namespace pw::eager
