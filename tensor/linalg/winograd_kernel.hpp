// Input and output transforms of Winograd convolutions F(2×2, 3×3), compiled per instruction set
// like panel_kernel.hpp; winograd.cpp selects the variant.
#pragma once

#include <cstdint>

namespace pw {

/// Points of a tile: 4 × 4 input elements give 2 × 2 results.
constexpr std::int64_t kWinogradPoints = 16, kWinogradResults = 4;

/// An input tile and its 16 points.
struct WinogradInput {
  const float* elements[kWinogradPoints];  ///< row-major; each element's channels are contiguous
  std::int64_t groups;                     ///< number of groups of kPanelGroup channels
  float* points;                           ///< points of the first group
  std::int64_t group_step, point_step;
};

/// 16 points and the result tile that they give.
struct WinogradOutput {
  const float* points;
  std::int64_t point_step, channels;      ///< a multiple of kPanelGroup
  const float* bias;                      ///< one number for each channel, or null
  const float* others[kWinogradResults];  ///< added afterwards, if the first is not null
  bool relu;                              ///< clamp results to at least 0, last
  float* results[kWinogradResults];
};

struct WinogradKernels {
  void (*input)(const WinogradInput& tile);
  /// Transforms a tile. Returns false if a sum is not finite, because infinities and NaN then have
  /// spread over the tile.
  bool (*output)(const WinogradOutput& tile);
};

namespace portable {
WinogradKernels winograd_kernels();
}
namespace avx2 {
WinogradKernels winograd_kernels();
}
namespace avx512 {
WinogradKernels winograd_kernels();
}

}  // namespace pw
