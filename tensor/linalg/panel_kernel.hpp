// Tiles of matrix products with packed operands, compiled per instruction set like gemm_kernel.hpp.
// panels.cpp and eager/scaled_attention.cpp select the variant.
#pragma once

#include <cstdint>

namespace pw {

/// Number of adjacent elements of a row in a packed left operand.
constexpr std::int64_t kPanelGroup = 16;

/// Some rows of c and the columns of one panel: a · b with its epilogue.
struct PanelTile {
  const float* a;  ///< [groups][rows][kPanelGroup]
  const float* b;  ///< [groups · kPanelGroup][columns of a panel]
  std::int64_t groups;
  const float* start;  ///< initial value of each row of c, one number for each column; null: zeros
  float* c;
  std::int64_t step;        ///< step between rows of c
  std::int64_t half;        ///< step from the first half of the columns to the second
  bool add;                 ///< add to the contents of c
  const float* other;       ///< array added afterwards, or null
  std::int64_t other_step;  ///< step between rows; columns are contiguous
  bool relu;                ///< clamp results to at least 0, last
};

/// Scores of some rows, [groups][rows][kPanelGroup], for an online softmax whose earlier columns
/// are already accumulated.
struct ScoreTile {
  float* scores;
  std::int64_t rows, groups;
  float *largest, *total;  ///< running maximum and sum of each row
  float* factor;           ///< rescale factor of each row's earlier results
};

struct PanelKernels {
  std::int64_t rows;     ///< maximum rows of a tile
  std::int64_t columns;  ///< columns of a panel: a divisor or a multiple of kPanelGroup
  void (*tile)(std::int64_t rows, const PanelTile& tile);
  /// Replaces scores by exponentials relative to the running maximum.
  void (*weigh)(const ScoreTile& tile);
  /// Computes x · Φ(x) in place, like op gelu.
  void (*gelu)(float* x, std::int64_t n);
};

namespace portable {
PanelKernels panel_kernels();
}
namespace avx2 {
PanelKernels panel_kernels();
}
namespace avx512 {
PanelKernels panel_kernels();
}

}  // namespace pw
