// Products of packed blocks, compiled per instruction set; gemm.cpp selects the variant.
#pragma once

#include <cstdint>

namespace pw {

constexpr std::int64_t kTurned = 4;

/// Some rows of c and the columns of one panel: c = a · b, or c += a · b.
template <class Scalar>
struct BlockTile {
  const Scalar* a;  ///< [depth][rows]
  const Scalar* b;  ///< [depth][columns of a panel]
  std::int64_t depth;
  Scalar* c;
  std::int64_t c_step;  ///< step between rows of c
  bool add;             ///< add to the contents of c
};

/// Computes tiles in one order of additions, whatever the number of rows: an element starts from 0,
/// adds its products in ascending depth, and is then added to c.
template <class Scalar>
struct BlockKernel {
  std::int64_t rows;     ///< maximum rows of a tile
  std::int64_t columns;  ///< columns of a panel
  void (*tile)(std::int64_t rows, const BlockTile<Scalar>& tile);
  /// Transposes kTurned columns into a panel: to[k * columns + j] = from[j * step + k].
  void (*turn)(const Scalar* from, std::int64_t step, std::int64_t depth, Scalar* to);
  /// Copies a row to panels that are `step` elements apart.
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
