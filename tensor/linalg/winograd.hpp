// Convolutions with kernels of 3 × 3 and stride 1 by Winograd's minimal filtering F(2×2, 3×3): 16
// matmuls of transformed tiles with transformed weights, 4/9 of the multiplications of im2col.
#pragma once

#include <optional>
#include <vector>

#include "tensor/linalg/panels.hpp"

namespace pw {

/// The weight of one convolution at each point of a tile, [channels, outputs].
struct WinogradWeights {
  std::vector<Panels> points;
};

/// Whether it is one of these and faster so.
[[nodiscard]] bool suits_winograd(const Convolution& c);
/// Of weights [outputs, channels, 3, 3], row-major; none where one is not finite at some point.
[[nodiscard]] std::optional<WinogradWeights> winograd_weights(const Convolution& c, const float* w);
/// y (row-major, x.count() × outputs), finished. Where a sum is not finite, all is computed by
/// im2col instead, which leaves infinities and NaN in their places.
void convolve(const Pixels& x, const WinogradWeights& w, const Finish& finish, float* y);

}  // namespace pw
