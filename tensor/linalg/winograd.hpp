// Convolutions with 3 × 3 kernels and stride 1 by Winograd's minimal filtering F(2×2, 3×3): 16
// matmuls of transformed tiles with transformed weights, with 4/9 of the multiplications of im2col
// (Winograd 1980; Lavin and Gray 2015).
#pragma once

#include <optional>
#include <vector>

#include "tensor/linalg/panels.hpp"

namespace pw {

/// Transformed weights of a convolution: one matrix for each point of a tile, [channels, outputs].
struct WinogradWeights {
  std::vector<Panels> points;
};

/// Returns true if the convolution has this form and is faster by Winograd's method.
[[nodiscard]] bool suits_winograd(const Convolution& c);
/// Transforms weights [outputs, channels, 3, 3], row-major; returns nothing if a transformed weight
/// is not finite.
[[nodiscard]] std::optional<WinogradWeights> winograd_weights(const Convolution& c, const float* w);
/// Computes y (row-major, x.count() × outputs) and applies the epilogue. If a sum is not finite,
/// everything is recomputed by im2col, which keeps infinities and NaN in their places.
void convolve(const Pixels& x, const WinogradWeights& w, const Finish& finish, float* y);

}  // namespace pw
