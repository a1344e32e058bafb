// Windows, means and samples of a convolution, pool or resize call.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/kernel.hpp"
#include "tensor/window.hpp"

namespace pw {

/// Returns the window of a call with `stride`, `padding` and optionally `dilation`, all of equal
/// length.
[[nodiscard]] Window window_of(const Call& call, const Extents& kernel, const Extents& in,
                               const Extents& out);
[[nodiscard]] Convolution convolution_of(const Call& call, const Extents& x, const Extents& w,
                                         const Extents& y);

/// Elements [begin, end) of an axis, and the number of elements they count as.
struct Stretch {
  std::int64_t begin = 0, end = 0, count = 0;
};
/// Means of avg_pool, adaptive_avg_pool and their transposes: a stretch for each place on an axis.
struct Means {
  std::array<std::vector<Stretch>, 3> axes;
  std::int64_t divisor = 0;  ///< 0: use the count
  Axes in{1, 1, 1}, out{1, 1, 1};
};
[[nodiscard]] Means means_of(const Call& call, const Extents& in, const Extents& out);
[[nodiscard]] Means adaptive_means_of(std::size_t axes, const Extents& in, const Extents& out);

/// The two elements between which a result's element is sampled along an axis, and the distance
/// from the first. Positions are computed in f32 as in PyTorch, unless `wide`.
struct AxisSample {
  std::int64_t first = 0, second = 0;
  double share = 0;  ///< weight of the second element
};
[[nodiscard]] std::size_t sampled_axes(const Call& call);
[[nodiscard]] std::array<std::vector<AxisSample>, 3> samples_of(const Call& call, const Extents& in,
                                                                const Extents& out, bool linear,
                                                                bool wide);

}  // namespace pw
