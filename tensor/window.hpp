// Geometry of convolution and pooling windows over up to three axes. Missing axes have extent 1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "tensor/array.hpp"

namespace pw {

using Axes = std::array<std::int64_t, 3>;

struct Window {
  Axes kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  Axes in{1, 1, 1};   ///< extents of the windowed input
  Axes out{1, 1, 1};  ///< number of window places

  [[nodiscard]] std::int64_t in_count() const { return in[0] * in[1] * in[2]; }
  [[nodiscard]] std::int64_t out_count() const { return out[0] * out[1] * out[2]; }
  [[nodiscard]] std::int64_t kernel_count() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Returns the input index of element `tap` of a window place; it may lie in the padding.
  [[nodiscard]] std::int64_t source(std::size_t axis, std::int64_t place, std::int64_t tap) const {
    return place * stride[axis] - padding[axis] + tap * dilation[axis];
  }
  /// Returns true if some place's window covers only padding.
  [[nodiscard]] bool has_padding_alone() const;
  /// Returns the places [first, second) at which an element of the window is inside the input.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> inside(std::size_t axis,
                                                             std::int64_t tap) const;
};

/// Returns the last `axes` of these extents, preceded by 1s for missing axes.
[[nodiscard]] Axes last_axes(const Extents& extents, std::size_t axes);
/// A convolution of x by w to y: [n, groups · channels, in], [groups · outputs, channels, kernel]
/// and [n, groups · outputs, out].
struct Convolution {
  Window window;
  std::int64_t batch = 0, groups = 1, channels = 0, outputs = 0;  ///< counts for one group
  [[nodiscard]] std::int64_t taps() const { return channels * window.kernel_count(); }
};

}  // namespace pw
