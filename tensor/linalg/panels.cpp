// Products with a packed right operand, including convolutions by implicit im2col: the rows of the
// left operand are gathered from the image while a block is packed, and are never stored as a whole
// matrix. Blocking follows Goto and van de Geijn (2008): a block of the left operand fits the
// second-level cache, and panels of the right operand stream through it.
//
// Invariant: an element adds its products in ascending depth, independent of blocks and threads;
// blocks of depth are added in order. Cost: O(rows · columns · depth) multiplications; the left
// operand is packed once for all threads if it has at most kMost elements, else once for each
// thread's part.
#include "tensor/linalg/panels.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "tensor/array.hpp"
#include "tensor/instruction_set.hpp"
#include "tensor/linalg/panel_kernel.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

/// A block of the left operand that fits the second-level cache.
constexpr std::int64_t kBlockRows = 224, kBlockDepth = 768;
constexpr std::int64_t kNearWeights = 1 << 16;   // elements
constexpr std::int64_t kWorthAThread = 1 << 18;  // multiplications

const PanelKernels& kernels() { return panel_kernels(); }

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Transposes contiguous columns to rows that are `step` apart, some rows of all columns at a time,
/// so that these stay in the cache.
void turn(const float* from, std::int64_t rows, std::int64_t columns, float* to,
          std::int64_t step) {
  constexpr std::int64_t kRows = 16;
  for (std::int64_t first = 0; first < rows; first += kRows) {
    const std::int64_t last = std::min(first + kRows, rows);
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t k = first; k < last; ++k) to[k * step + j] = from[j * rows + k];
  }
}

Panels empty_panels(std::int64_t depth, std::int64_t columns) {
  Panels out{depth, columns, nullptr};
  out.data = aligned_floats(out.count() * out.padded_depth() * kernels().columns);
  return out;
}

/// Packs depths [first, last) of some pixels' rows, in groups. Elements under a row of the kernel
/// are contiguous if the dilation is 1; such runs are copied at once.
class Packing {
 public:
  explicit Packing(const Pixels& x) : x_(x) {
    const Window& w = x.window;
    merged_ = x.step == x.channels && w.dilation[2] == 1 ? w.kernel[2] : 1;
    for (std::int64_t z = 0; z < w.kernel[0]; ++z)
      for (std::int64_t y = 0; y < w.kernel[1]; ++y)
        for (std::int64_t i = 0; i < w.kernel[2]; i += merged_)
          runs_.push_back({z * w.dilation[0], y * w.dilation[1], i * w.dilation[2]});
  }

  void pack(const Tile& tile, std::int64_t first, std::int64_t last, float* out) {
    const std::int64_t step = tile.rows * kPanelGroup;
    const bool clips = x_.window.padding != Axes{0, 0, 0};
    const bool whole = (clips ? x_.channels : merged_ * x_.channels) % kPanelGroup == 0;
    Place place = place_of(tile.row);
    for (std::int64_t r = 0; r < tile.rows; ++r, advance(place)) {
      float* const row = out + r * kPanelGroup;
      if (whole && last % kPanelGroup == 0) {
        copy_runs(place, first, last, row, step);
        continue;
      }
      // Copies of any length go to a scratch row first, from which whole groups are copied.
      const auto padded = static_cast<std::size_t>(rounded_up(last, kPanelGroup) - first);
      row_.resize(std::max(row_.size(), padded));
      copy_runs(place, first, last, row_.data(), kPanelGroup);
      std::fill(row_.begin() + (last - first), row_.begin() + static_cast<std::ptrdiff_t>(padded),
                0.0f);
      copy_run(row_.data(), 0, static_cast<std::int64_t>(padded), step, row);
    }
  }

 private:
  struct Place {
    std::int64_t image;
    Axes at;
  };

  [[nodiscard]] Place place_of(std::int64_t row) const {
    const Axes& out = x_.window.out;
    const std::int64_t places = x_.window.out_count(), at = row % places;
    return {row / places, {at / (out[1] * out[2]), at / out[2] % out[1], at % out[2]}};
  }

  void advance(Place& place) const {
    for (const std::size_t axis : {2, 1, 0}) {
      if (++place.at[axis] < x_.window.out[axis]) return;
      place.at[axis] = 0;
    }
    ++place.image;
  }

  /// Copies depths [first, last); groups are `step` apart.
  void copy_runs(const Place& place, std::int64_t first, std::int64_t last, float* row,
                 std::int64_t step) const {
    const std::int64_t length = merged_ * x_.channels;
    auto run = static_cast<std::size_t>(first / length);
    std::int64_t skipped = first % length;
    for (std::int64_t k = 0; k < last - first; ++run, skipped = 0) {
      const std::int64_t count = std::min(last - first - k, length - skipped);
      pack_run(place, runs_[run], skipped, count, k, step, row);
      k += count;
    }
  }

  /// Copies elements [skipped, skipped + count) of a run to the depths from k on.
  void pack_run(const Place& place, const Axes& run, std::int64_t skipped, std::int64_t count,
                std::int64_t k, std::int64_t step, float* row) const {
    const Window& w = x_.window;
    const Axes& in = w.in;
    const std::int64_t z = w.source(0, place.at[0], 0) + run[0],
                       y = w.source(1, place.at[1], 0) + run[1],
                       x = w.source(2, place.at[2], 0) + run[2];
    std::int64_t begin = 0, end = 0;  // the part of the run inside the image
    if (z >= 0 && z < in[0] && y >= 0 && y < in[1]) {
      begin = std::clamp(-x * x_.channels, skipped, skipped + count);
      end = std::clamp((in[2] - x) * x_.channels, begin, skipped + count);
    }
    if (begin == end) begin = end = skipped + count;
    const float* const from =
        x_.data + (((place.image * in[0] + z) * in[1] + y) * in[2] + x) * x_.step;
    fill_zeros(k, k + begin - skipped, step, row);
    copy_run(from + begin, k + begin - skipped, k + end - skipped, step, row);
    fill_zeros(k + end - skipped, k + count, step, row);
  }

  static void fill_zeros(std::int64_t k, std::int64_t end, std::int64_t step, float* row) {
    for (; k < end; ++k) row[k / kPanelGroup * step + k % kPanelGroup] = 0;
  }

  /// Copies elements to depths [k, end) in groups; at once if they are contiguous.
  static void copy_run(const float* from, std::int64_t k, std::int64_t end, std::int64_t step,
                       float* row) {
    if (step == kPanelGroup) {
      std::copy(from, from + (end - k), row + k);
      return;
    }
    float* to = row + k / kPanelGroup * step;
    for (; k < end; k += kPanelGroup, from += kPanelGroup, to += step)
      std::memcpy(to, from, kPanelGroup * sizeof(float));
  }

  const Pixels& x_;
  std::int64_t merged_ = 1;  ///< kernel elements of one run
  std::vector<Axes> runs_;   ///< runs, relative to the kernel's first element
  std::vector<float> row_;
};

/// Visits rows [first, last) in blocks: visit(row, rows).
template <class Visit>
void for_each_block(std::int64_t first, std::int64_t last, const Visit& visit) {
  for (std::int64_t row = first; row < last; row += kBlockRows)
    visit(row, std::min(kBlockRows, last - row));
}

/// The whole left operand, packed by all threads together: [blocks of depth][tiles].
class PackedRows {
 public:
  static constexpr std::int64_t kMost = 1 << 23;  // elements

  PackedRows(const Pixels& a, const Panels& b)
      : rows_(a.count()), data_(aligned_floats(rows_ * b.padded_depth())) {
    std::vector<Tile> tiles;
    for_each_block(0, rows_, [&](std::int64_t row, std::int64_t rows) {
      for (const Tile& tile : tiles_of(row, rows)) tiles.push_back(tile);
    });
    const std::int64_t depth = b.padded_depth(), blocks = (depth + kBlockDepth - 1) / kBlockDepth,
                       of_depth = static_cast<std::int64_t>(tiles.size());
    const std::int64_t grain = 1 + kNumbersWorthAThread / (kernels().rows * kBlockDepth);
    parallel_for(blocks * of_depth, grain, [&](std::int64_t begin, std::int64_t end) {
      Packing packing(a);
      for (std::int64_t i = begin; i < end; ++i) {
        const Tile& tile = tiles[static_cast<std::size_t>(i % of_depth)];
        const std::int64_t k = i / of_depth * kBlockDepth, here = std::min(kBlockDepth, depth - k);
        packing.pack(tile, k, std::min(k + here, b.depth), at(k, here, tile.row));
      }
    });
  }

  /// Returns row `row` of a tile onward, for depths [k, k + depth) of a block.
  [[nodiscard]] float* at(std::int64_t k, std::int64_t depth, std::int64_t row) const {
    return data_.get() + k * rows_ + row * depth;
  }

 private:
  static constexpr std::int64_t kNumbersWorthAThread = 1 << 15;
  std::int64_t rows_;
  std::shared_ptr<float> data_;
};

/// Computes a range of rows and panels of a product on one thread.
class PartOfProduct {
 public:
  /// Creates the part; without `packed` it packs its own rows.
  PartOfProduct(const Pixels& a, const Panels& b, const Finish& finish, float* y,
                const PackedRows* packed = nullptr)
      : packing_(a), b_(b), finish_(finish), y_(y), packed_(packed), panels_(b.count()) {}

  void run(std::int64_t row, std::int64_t rows, std::int64_t panel, std::int64_t panels) {
    const std::int64_t depth = b_.padded_depth();
    if (packed_ == nullptr)
      block_ = aligned_floats(std::min(rows, kBlockRows) * std::min(depth, kBlockDepth));
    for (std::int64_t k = 0; k < depth; k += kBlockDepth)
      for_each_block(row, row + rows, [&](std::int64_t first, std::int64_t count) {
        run_block(first, count, k, panel, panels);
      });
  }

 private:
  void run_block(std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t panel,
                 std::int64_t panels) {
    const std::int64_t depth = std::min(kBlockDepth, b_.padded_depth() - k);
    const std::vector<Tile> tiles = tiles_of(row, rows);
    // Weights that stay in the cache are reread for each tile, whose results are then written
    // together. For larger weights, each panel is read once for all tiles of the block.
    if (depth * panels_ * kernels().columns <= kNearWeights) {
      for (const Tile& tile : tiles) {
        const float* const a = packed_rows(tile, k, depth, 0);
        for (std::int64_t p = panel; p < panel + panels; ++p) run_tile(a, tile, p, k, depth);
      }
      return;
    }
    std::vector<const float*> a;
    for (const Tile& tile : tiles)
      a.push_back(packed_rows(tile, k, depth, (tile.row - row) * depth));
    for (std::int64_t p = panel; p < panel + panels; ++p)
      for (std::size_t i = 0; i < tiles.size(); ++i) run_tile(a[i], tiles[i], p, k, depth);
  }

  /// Returns a tile's packed rows; packs them to the block at `offset` unless all rows are packed
  /// already.
  const float* packed_rows(const Tile& tile, std::int64_t k, std::int64_t depth,
                           std::int64_t offset) {
    if (packed_ != nullptr) return packed_->at(k, depth, tile.row);
    float* const to = block_.get() + offset;
    packing_.pack(tile, k, std::min(k + depth, b_.depth), to);
    return to;
  }

  void run_tile(const float* a, const Tile& tile, std::int64_t p, std::int64_t k,
                std::int64_t depth) {
    const std::int64_t wide = kernels().columns, column = p * wide,
                       columns = std::min(wide, b_.columns - column);
    const bool first = k == 0, last = k + depth == b_.padded_depth();
    PanelTile t{};
    t.a = a;
    t.b = b_.panel(p) + k * wide;
    t.groups = depth / kPanelGroup;
    t.add = !first;
    t.relu = last && finish_.then == Then::relu;
    t.half = wide / 2;
    t.c = y_ + tile.row * b_.columns + column;
    t.step = t.other_step = b_.columns;
    if (first && finish_.bias != nullptr) t.start = finish_.bias + column;
    if (last && finish_.other != nullptr) t.other = finish_.other + tile.row * b_.columns + column;
    if (columns < wide) {
      run_narrow(t, tile.rows, columns);
    } else {
      kernels().tile(tile.rows, t);
    }
    if (!last || finish_.then != Then::gelu) return;
    for (std::int64_t r = 0; r < tile.rows; ++r)
      kernels().gelu(y_ + (tile.row + r) * b_.columns + column, columns);
  }

  /// Computes the last panel, which has fewer columns.
  void run_narrow(PanelTile t, std::int64_t rows, std::int64_t columns) {
    const std::int64_t wide = kernels().columns;
    std::vector<float> c(static_cast<std::size_t>(rows * wide)), other(c.size()),
        start(static_cast<std::size_t>(wide));
    float* const to = t.c;
    const auto copy_rows = [&](const float* from, std::int64_t from_step, float* into,
                               std::int64_t into_step) {
      for (std::int64_t r = 0; r < rows; ++r)
        std::copy_n(from + r * from_step, columns, into + r * into_step);
    };
    if (t.add) copy_rows(to, b_.columns, c.data(), wide);
    if (t.other != nullptr)
      copy_rows(t.other, b_.columns, other.data(), wide), t.other = other.data();
    if (t.start != nullptr) std::copy_n(t.start, columns, start.data()), t.start = start.data();
    t.c = c.data();
    t.step = t.other_step = wide;
    kernels().tile(rows, t);
    copy_rows(c.data(), wide, to, b_.columns);
  }

  Packing packing_;
  const Panels& b_;
  const Finish& finish_;
  float* y_;
  const PackedRows* packed_;
  std::int64_t panels_;  ///< in all of b
  std::shared_ptr<float> block_;
};

}  // namespace

const PanelKernels& panel_kernels() {
  static const PanelKernels chosen = for_this_machine<PanelKernels()>(PW_VARIANTS(panel_kernels))();
  return chosen;
}

std::shared_ptr<float> aligned_floats(std::int64_t count) {
  constexpr std::size_t kLine = 64;
  const auto bytes = static_cast<std::size_t>(rounded_up(
      std::max<std::int64_t>(count, 1) * static_cast<std::int64_t>(sizeof(float)), kLine));
  auto* const data = static_cast<float*>(std::aligned_alloc(kLine, bytes));
  if (data == nullptr) throw std::bad_alloc();
  return {data, [](float* p) { std::free(p); }};
}

std::vector<Tile> tiles_of(std::int64_t first, std::int64_t rows) {
  std::vector<Tile> out;
  std::int64_t left = (rows + kernels().rows - 1) / kernels().rows;
  for (const std::int64_t end = first + rows; first < end; --left) {
    const std::int64_t height = (end - first + left - 1) / left;
    out.push_back({first, height});
    first += height;
  }
  return out;
}

std::int64_t Panels::padded_depth() const { return rounded_up(depth, kPanelGroup); }
std::int64_t Panels::count() const { return (columns + kernels().columns - 1) / kernels().columns; }
const float* Panels::panel(std::int64_t i) const {
  return data.get() + i * padded_depth() * kernels().columns;
}

Panels panels_of(const Matrix& b) {
  Panels out = empty_panels(b.rows, b.columns);
  const std::int64_t wide = kernels().columns, size = size_of(b.dtype);
  const bool by_column = b.row_step == 1 && b.column_step != 1;
  parallel_for(out.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(by_column ? b.rows * wide : 0));
    for (std::int64_t p = begin; p < end; ++p) {
      float* const to = out.data.get() + p * out.padded_depth() * wide;
      const std::int64_t first = p * wide, columns = std::min(wide, b.columns - first);
      if (columns < wide || out.padded_depth() != b.rows)
        std::fill_n(to, out.padded_depth() * wide, 0.0f);
      if (by_column) {
        for (std::int64_t j = 0; j < columns; ++j)
          load_run(b.dtype, b.data + (first + j) * b.column_step * size, 1, b.rows,
                   scratch.data() + j * b.rows);
        turn(scratch.data(), b.rows, columns, to, wide);
        continue;
      }
      for (std::int64_t k = 0; k < b.rows; ++k)
        load_run(b.dtype, b.data + (k * b.row_step + first * b.column_step) * size, b.column_step,
                 columns, to + k * wide);
    }
  });
  return out;
}

Panels panels_of(const Convolution& c, const float* w) {
  const std::int64_t taps = c.window.kernel_count();
  std::vector<float> turned(static_cast<std::size_t>(c.outputs * c.taps()));
  for (std::int64_t o = 0; o < c.outputs; ++o)
    for (std::int64_t channel = 0; channel < c.channels; ++channel)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        turned[static_cast<std::size_t>((o * taps + tap) * c.channels + channel)] =
            w[(o * c.channels + channel) * taps + tap];
  return panels_of(Matrix{DType::f32, reinterpret_cast<const std::byte*>(turned.data()), c.taps(),
                          c.outputs, 1, c.taps()});
}

Pixels rows_of(const float* data, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  Pixels out{data, step, columns, 1, {}};
  out.window.in[2] = out.window.out[2] = rows;
  return out;
}

void multiply(const Pixels& a, const Panels& b, const Finish& finish, float* y) {
  const std::int64_t rows = a.count(), panels = b.count();
  if (rows == 0 || panels == 0) return;
  const std::int64_t a_panel = rows * b.depth * kernels().columns + 1,
                     a_row = b.depth * b.columns + 1;
  if (rows < 2 * kBlockRows && panels > 1 && rows * b.padded_depth() <= PackedRows::kMost) {
    const PackedRows packed(a, b);
    // Deep products process several panels together, so that a block of depth is read once for all
    // of them.
    const std::int64_t chunk = (b.padded_depth() + kBlockDepth - 1) / kBlockDepth;
    parallel_for(
        panels, 1 + kWorthAThread / a_panel,
        [&](std::int64_t begin, std::int64_t end) {
          PartOfProduct(a, b, finish, y, &packed).run(0, rows, begin, end - begin);
        },
        chunk);
    return;
  }
  parallel_for(
      rows, kernels().rows + kWorthAThread / a_row,
      [&](std::int64_t begin, std::int64_t end) {
        PartOfProduct(a, b, finish, y).run(begin, end - begin, 0, panels);
      },
      kBlockRows / 2);
}

}  // namespace pw
