// Transforms of Winograd's convolutions F(2×2, 3×3), by instruction set, as in panel_kernel.hpp;
// winograd.cpp chooses.
#pragma once

#include <cstdint>

namespace pw {

/// Points of a tile: 4 × 4 elements of the input, of which 2 × 2 elements of the result are made.
constexpr std::int64_t kWinogradPoints = 16, kWinogradResults = 4;

/// A tile of the input, to its 16 points.
struct WinogradInput {
  const float* elements[kWinogradPoints];  ///< row-major; the channels of each stand together
  std::int64_t groups;                     ///< of kPanelGroup channels
  float* points;                           ///< of the first group
  std::int64_t group_step, point_step;
};

/// 16 points, to the tile of the result that they make.
struct WinogradOutput {
  const float* points;
  std::int64_t point_step, channels;      ///< a multiple of kPanelGroup
  const float* bias;                      ///< a number a channel, or null
  const float* others[kWinogradResults];  ///< added then, where the first is not null
  bool relu;                              ///< and then nothing below 0
  float* results[kWinogradResults];
};

struct WinogradKernels {
  void (*input)(const WinogradInput& tile);
  /// Whether all sums are finite: else what is infinite or no number has spread over the tile.
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
