// Geometry of windows over up to three axes, as convolutions and pools move them. Missing axes have
// extent 1.
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
  Axes in{1, 1, 1};   ///< extents of what the window moves over
  Axes out{1, 1, 1};  ///< its places

  [[nodiscard]] std::int64_t in_count() const { return in[0] * in[1] * in[2]; }
  [[nodiscard]] std::int64_t out_count() const { return out[0] * out[1] * out[2]; }
  [[nodiscard]] std::int64_t kernel_count() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// Where element `tap` of the window's place is, which may be in the padding.
  [[nodiscard]] std::int64_t source(std::size_t axis, std::int64_t place, std::int64_t tap) const {
    return place * stride[axis] - padding[axis] + tap * dilation[axis];
  }
  /// Whether there is a place at which nothing of the window is inside.
  [[nodiscard]] bool has_padding_alone() const;
  /// The places [first, second) at which an element of the window is inside.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> inside(std::size_t axis,
                                                             std::int64_t tap) const;
};

/// The last of these extents, behind as many 1 as are lacking; `axes` of them.
[[nodiscard]] Axes last_axes(const Extents& extents, std::size_t axes);
/// A convolution of x to y by w: [n, groups · channels, in], [n, groups · outputs, out] and
/// [groups · outputs, channels, kernel].
struct Convolution {
  Window window;
  std::int64_t batch = 0, groups = 1, channels = 0, outputs = 0;  ///< both of one group
  [[nodiscard]] std::int64_t taps() const { return channels * window.kernel_count(); }
};

}  // namespace pw
