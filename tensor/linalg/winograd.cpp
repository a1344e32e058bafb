// Winograd convolution F(2×2, 3×3): each 4 × 4 input tile is transformed to 16 points, each point
// is a matrix product over channels with the transformed weights, and 16 products are transformed
// back to 2 × 2 results (Winograd 1980; Lavin and Gray 2015).
//
// Invariant: if every sum is finite the result equals im2col up to rounding; otherwise the
// convolution is recomputed by im2col, since a transform spreads infinities and NaN over a tile.
// Cost: 16 · channels · outputs multiplications for each 4 results, 4/9 of im2col, and weights of
// 16/9 the size.
#include "tensor/linalg/winograd.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "tensor/instruction_set.hpp"
#include "tensor/linalg/winograd_kernel.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace {

const WinogradKernels& kernels() {
  static const WinogradKernels chosen =
      for_this_machine<WinogradKernels()>(PW_VARIANTS(winograd_kernels))();
  return chosen;
}

constexpr std::int64_t kLeastRows = 56;  // minimum rows for which the weights are read once
constexpr std::int64_t kStep = 2;        // results of a tile on an axis

std::int64_t tiles_on(std::int64_t extent) { return (extent + kStep - 1) / kStep; }

/// Returns G g Gᵀ for a kernel, at each point.
std::array<double, kWinogradPoints> transformed(const float* g) {
  const auto each = [](double a, double b, double c) {
    return std::array<double, 4>{a, (a + b + c) / 2, (a - b + c) / 2, c};
  };
  std::array<std::array<double, 4>, 3> columns{};
  for (std::size_t i = 0; i < 3; ++i) columns[i] = each(g[i], g[3 + i], g[6 + i]);
  std::array<double, kWinogradPoints> out{};
  for (std::size_t row = 0; row < 4; ++row) {
    const auto made = each(columns[0][row], columns[1][row], columns[2][row]);
    std::copy(made.begin(), made.end(), out.begin() + static_cast<std::ptrdiff_t>(row * 4));
  }
  return out;
}

/// Computes tiles [first, first + rows) of a convolution on one thread.
class PartOfConvolution {
 public:
  PartOfConvolution(const Pixels& x, const WinogradWeights& w, const Finish& finish, float* y)
      : x_(x),
        w_(w),
        finish_(finish),
        y_(y),
        channels_(x.channels),
        outputs_(w.points[0].columns),
        down_(tiles_on(x.window.out[1])),
        across_(tiles_on(x.window.out[2])),
        zeros_(static_cast<std::size_t>(channels_)),
        outside_(static_cast<std::size_t>(outputs_)) {}

  /// Returns true if all sums were finite.
  bool run(std::int64_t first, std::int64_t rows) {
    // The points of a block, before and after, should stay in the second-level cache; weights
    // should serve many tiles.
    constexpr std::int64_t kFloats = 1 << 17;
    const std::int64_t most =
        std::max(kLeastRows, kFloats / (kWinogradPoints * (channels_ + outputs_)));
    const std::int64_t blocks = (rows + most - 1) / most, block = (rows + blocks - 1) / blocks;
    inputs_ = aligned_floats(kWinogradPoints * block * channels_);
    products_ = aligned_floats(kWinogradPoints * block * outputs_);
    for (const std::int64_t end = first + rows; first < end; first += block)
      if (!run_block(first, std::min(block, end - first))) return false;
    return true;
  }

 private:
  bool run_block(std::int64_t first, std::int64_t rows) {
    const std::vector<Tile> tiles = tiles_of(first, rows);
    for (const Tile& tile : tiles)
      for (std::int64_t r = 0; r < tile.rows; ++r) read(tile, r, first, rows);
    for (std::int64_t p = 0; p < kWinogradPoints; ++p) multiply_point(p, tiles, first, rows);
    bool finite = true;
    for (std::int64_t r = 0; r < rows; ++r) finite = write(first + r, r, rows) && finite;
    return finite;
  }

  struct Place {
    std::int64_t image, y, x;  ///< of a tile's first result
  };
  [[nodiscard]] Place place_of(std::int64_t row) const {
    return {row / (down_ * across_), row / across_ % down_ * kStep, row % across_ * kStep};
  }

  void read(const Tile& tile, std::int64_t r, std::int64_t first, std::int64_t rows) const {
    const Window& w = x_.window;
    const Place place = place_of(tile.row + r);
    const float* const image = x_.data + place.image * w.in_count() * x_.step;
    WinogradInput t{};
    for (std::int64_t i = 0; i < kWinogradPoints; ++i) {
      const std::int64_t y = place.y - w.padding[1] + i / 4, x = place.x - w.padding[2] + i % 4;
      const bool valid = y >= 0 && y < w.in[1] && x >= 0 && x < w.in[2];
      t.elements[i] = valid ? image + (y * w.in[2] + x) * x_.step : zeros_.data();
    }
    t.groups = channels_ / kPanelGroup;
    t.points = inputs_.get() + (tile.row - first) * channels_ + r * kPanelGroup;
    t.group_step = tile.rows * kPanelGroup;
    t.point_step = rows * channels_;
    kernels().input(t);
  }

  void multiply_point(std::int64_t point, const std::vector<Tile>& tiles, std::int64_t first,
                      std::int64_t rows) const {
    const Panels& w = w_.points[static_cast<std::size_t>(point)];
    const std::int64_t wide = panel_kernels().columns;
    PanelTile t{};
    t.groups = channels_ / kPanelGroup;
    t.step = outputs_;
    t.half = wide / 2;
    for (std::int64_t panel = 0; panel < w.count(); ++panel) {
      t.b = w.panel(panel);
      for (const Tile& tile : tiles) {
        const std::int64_t row = point * rows + tile.row - first;
        t.a = inputs_.get() + row * channels_;
        t.c = products_.get() + row * outputs_ + panel * wide;
        panel_kernels().tile(tile.rows, t);
      }
    }
  }

  /// Discards results beyond the edge.
  bool write(std::int64_t tile, std::int64_t r, std::int64_t rows) {
    const Axes& extents = x_.window.out;
    const Place place = place_of(tile);
    WinogradOutput t{};
    t.points = products_.get() + r * outputs_;
    t.point_step = rows * outputs_;
    t.channels = outputs_;
    t.bias = finish_.bias;
    t.relu = finish_.then == Then::relu;
    for (std::int64_t i = 0; i < kWinogradResults; ++i) {
      const std::int64_t y = place.y + i / kStep, x = place.x + i % kStep,
                         at = ((place.image * extents[1] + y) * extents[2] + x) * outputs_;
      const bool valid = y < extents[1] && x < extents[2];
      t.results[i] = valid ? y_ + at : outside_.data();
      if (finish_.other != nullptr) t.others[i] = valid ? finish_.other + at : outside_.data();
    }
    const bool finite = kernels().output(t);
    if (finish_.then == Then::gelu)
      for (float* result : t.results) panel_kernels().gelu(result, outputs_);
    return finite;
  }

  const Pixels& x_;
  const WinogradWeights& w_;
  const Finish& finish_;
  float* y_;
  std::int64_t channels_, outputs_;
  std::int64_t down_, across_;  ///< tiles on each axis
  std::vector<float> zeros_;    ///< an element outside the image
  std::vector<float> outside_;  ///< results outside the image
  std::shared_ptr<float> inputs_, products_;
};

/// Recovers the weights [outputs, channels, 3, 3] from their transforms, up to rounding.
std::vector<float> untransformed(const WinogradWeights& w) {
  const std::int64_t channels = w.points[0].depth, outputs = w.points[0].columns,
                     wide = panel_kernels().columns;
  std::vector<float> out(static_cast<std::size_t>(outputs * channels * 9));
  for (std::int64_t o = 0; o < outputs; ++o)
    for (std::int64_t i = 0; i < channels; ++i) {
      const auto point = [&](int row, int column) {
        return w.points[static_cast<std::size_t>(row * 4 + column)].panel(
            o / wide)[i * wide + o % wide];
      };
      // G maps (a, b, c) to (a, (a + b + c) / 2, (a - b + c) / 2, c).
      const auto row = [&](int r) {
        return std::array<float, 3>{point(r, 0), point(r, 1) - point(r, 2), point(r, 3)};
      };
      const auto first = row(0), plus = row(1), minus = row(2), last = row(3);
      float* const g = out.data() + (o * channels + i) * 9;
      for (std::size_t j = 0; j < 3; ++j)
        g[j] = first[j], g[3 + j] = plus[j] - minus[j], g[6 + j] = last[j];
    }
  return out;
}

}  // namespace

bool suits_winograd(const Convolution& c) {
  constexpr std::int64_t kLeastTiles =
      24;  // with fewer tiles the larger weights cost more than they save
  const Window& w = c.window;
  const bool form = w.kernel == Axes{1, 3, 3} && w.stride == Axes{1, 1, 1} &&
                    w.dilation == Axes{1, 1, 1} && w.in[0] == 1 && w.padding[0] == 0;
  return form && c.groups == 1 && c.channels % kPanelGroup == 0 && c.outputs % kPanelGroup == 0 &&
         c.outputs % panel_kernels().columns == 0 &&
         c.batch * tiles_on(w.out[1]) * tiles_on(w.out[2]) >= kLeastTiles;
}

std::optional<WinogradWeights> winograd_weights(const Convolution& c, const float* w) {
  const std::int64_t count = c.channels * c.outputs;
  std::vector<float> turned(static_cast<std::size_t>(kWinogradPoints * count));
  parallel_for(c.outputs, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t i = 0; i < c.channels; ++i) {
        const auto points = transformed(w + (o * c.channels + i) * 9);
        for (std::size_t p = 0; p < points.size(); ++p)
          turned[p * static_cast<std::size_t>(count) +
                 static_cast<std::size_t>(i * c.outputs + o)] = static_cast<float>(points[p]);
      }
  });
  if (!std::all_of(turned.begin(), turned.end(), [](float x) { return std::isfinite(x); }))
    return std::nullopt;
  WinogradWeights out;
  for (std::int64_t p = 0; p < kWinogradPoints; ++p)
    out.points.push_back(
        panels_of(Matrix{DType::f32, reinterpret_cast<const std::byte*>(turned.data() + p * count),
                         c.channels, c.outputs, c.outputs, 1}));
  return out;
}

void convolve(const Pixels& x, const WinogradWeights& w, const Finish& finish, float* y) {
  constexpr std::int64_t kWorthAThread = 1 << 16;  // multiplications at a point
  const std::int64_t tiles = x.batch * tiles_on(x.window.out[1]) * tiles_on(x.window.out[2]);
  const std::int64_t grain = 1 + kWorthAThread / (x.channels * w.points[0].columns);
  std::atomic<bool> finite = true;
  parallel_for(
      tiles, std::max(grain, panel_kernels().rows),
      [&](std::int64_t begin, std::int64_t end) {
        if (!PartOfConvolution(x, w, finish, y).run(begin, end - begin)) finite = false;
      },
      kLeastRows);
  if (finite) return;
  Convolution c;
  c.window = x.window;
  c.batch = x.batch;
  c.channels = x.channels;
  c.outputs = w.points[0].columns;
  multiply(x, panels_of(c, untransformed(w).data()), finish, y);
}

}  // namespace pw
