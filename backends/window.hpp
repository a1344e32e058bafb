// Geometry of windows over up to three axes: what convolutions and pools of all engines read of
// their calls. Axes that are lacking have extent 1.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/kernel.hpp"

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
/// The window of a call that has `stride`, `padding` and maybe `dilation`, as long as each other.
[[nodiscard]] Window window_of(const Call& call, const Extents& kernel, const Extents& in,
                               const Extents& out);

/// A convolution of x to y by w: [n, groups · channels, in], [n, groups · outputs, out] and
/// [groups · outputs, channels, kernel].
struct Convolution {
  Window window;
  std::int64_t batch = 0, groups = 1, channels = 0, outputs = 0;  ///< both of one group
  [[nodiscard]] std::int64_t taps() const { return channels * window.kernel_count(); }
};
[[nodiscard]] Convolution convolution_of(const Call& call, const Extents& x, const Extents& w,
                                         const Extents& y);

/// Elements [begin, end) of an axis, and how many they count as.
struct Stretch {
  std::int64_t begin = 0, end = 0, count = 0;
};
/// By place of an avg_pool's or adaptive_avg_pool's window, or of their transposes', on an axis.
struct Means {
  std::array<std::vector<Stretch>, 3> axes;
  std::int64_t divisor = 0;  ///< 0: the count
  Axes in{1, 1, 1}, out{1, 1, 1};
};
[[nodiscard]] Means means_of(const Call& call, const Extents& in, const Extents& out);
[[nodiscard]] Means adaptive_means_of(std::size_t axes, const Extents& in, const Extents& out);

/// By index of an axis of the result, which two elements it is between and how far it is from the
/// first. Places are computed in f32, unless `wide`, as PyTorch does.
struct AxisSample {
  std::int64_t first = 0, second = 0;
  double share = 0;  ///< of the second
};
[[nodiscard]] std::size_t sampled_axes(const Call& call);
[[nodiscard]] std::array<std::vector<AxisSample>, 3> samples_of(const Call& call, const Extents& in,
                                                                const Extents& out, bool linear,
                                                                bool wide);

}  // namespace pw
