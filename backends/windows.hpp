// The windows, means, and samples that a call of a convolution, a pool, or a resize states.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/kernel.hpp"
#include "tensor/window.hpp"

namespace pw {

/// The window of a call that has `stride`, `padding` and maybe `dilation`, as long as each other.
[[nodiscard]] Window window_of(const Call& call, const Extents& kernel, const Extents& in,
                               const Extents& out);
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
