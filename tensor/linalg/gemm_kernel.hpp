// The products of packed blocks, by instruction set; gemm.cpp chooses.
#pragma once

#include <cstdint>

namespace pw {

constexpr std::int64_t kTurned = 4;

/// Some rows of c and a panel's columns: c = a · b, or c += a · b.
template <class Scalar>
struct BlockTile {
  const Scalar* a;  ///< [depth][rows]
  const Scalar* b;  ///< [depth][columns of a panel]
  std::int64_t depth;
  Scalar* c;
  std::int64_t c_step;  ///< from row to row of c
  bool add;             ///< to what c holds
};

/// Computes tiles in one order of additions: an element starts from 0 and adds its products in
/// ascending depth, whatever the number of rows, and is added to c then.
template <class Scalar>
struct BlockKernel {
  std::int64_t rows;     ///< the most that a tile has
  std::int64_t columns;  ///< of a panel
  void (*tile)(std::int64_t rows, const BlockTile<Scalar>& tile);
  /// Transposes kTurned columns into a panel: to[k * columns + j] = from[j * step + k].
  void (*turn)(const Scalar* from, std::int64_t step, std::int64_t depth, Scalar* to);
  /// Copies a row to panels, which are `step` apart.
  void (*spread)(const Scalar* from, std::int64_t panels, std::int64_t step, Scalar* to);
};

namespace portable {
BlockKernel<float> block_kernel_f32();
BlockKernel<double> block_kernel_f64();
}  // namespace portable
namespace avx2 {
BlockKernel<float> block_kernel_f32();
BlockKernel<double> block_kernel_f64();
}  // namespace avx2
namespace avx512 {
BlockKernel<float> block_kernel_f32();
BlockKernel<double> block_kernel_f64();
}  // namespace avx512

}  // namespace pw
