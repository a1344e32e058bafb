// Tiles of matrix products with packed operands, by instruction set, as in gemm_kernel.hpp;
// panels.cpp and eager/scaled_attention.cpp choose.
#pragma once

#include <cstdint>

namespace pw {

/// How many numbers of a row stand together in a packed left operand.
constexpr std::int64_t kPanelGroup = 16;

/// Some rows of c and a panel's columns: a · b, and what follows it.
struct PanelTile {
  const float* a;  ///< [groups][rows][kPanelGroup]
  const float* b;  ///< [groups · kPanelGroup][columns of a panel]
  std::int64_t groups;
  const float* start;  ///< what each row of c starts from: a number a column; null: zeros
  float* c;
  std::int64_t step;        ///< from row to row of c
  std::int64_t half;        ///< from the first half of the columns to the second
  bool add;                 ///< to what c holds
  const float* other;       ///< added then, where it is not null
  std::int64_t other_step;  ///< from row to row; its columns stand together
  bool relu;                ///< and then nothing below 0
};

/// Scores of some rows, [groups][rows][kPanelGroup], on their way to a softmax whose earlier
/// columns have gone by.
struct ScoreTile {
  float* scores;
  std::int64_t rows, groups;
  float *largest, *total;  ///< by row, so far
  float* factor;           ///< by row: what earlier results are worth now
};

struct PanelKernels {
  std::int64_t rows;     ///< the most that a tile has
  std::int64_t columns;  ///< of a panel: a divisor or a multiple of kPanelGroup
  void (*tile)(std::int64_t rows, const PanelTile& tile);
  /// Scores become exponentials relative to the largest so far.
  void (*weigh)(const ScoreTile& tile);
  /// x · Φ(x) in place, as op gelu computes it.
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
