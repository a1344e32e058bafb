// The products of converted blocks, by instruction set; gemm.cpp chooses.
#pragma once

#include <cstdint>

namespace pw {

/// c += a · b: a is rows × depth and packed; b is depth × columns, or columns × depth if
/// transposed, packed; c has a row step.
template <class Scalar>
struct BlockProduct {
  const Scalar* a;
  const Scalar* b;
  Scalar* c;
  std::int64_t rows, depth, columns, c_step;
  bool b_transposed;
};

namespace portable {
void multiply_block(const BlockProduct<float>& product);
void multiply_block(const BlockProduct<double>& product);
}  // namespace portable
namespace avx2 {
void multiply_block(const BlockProduct<float>& product);
void multiply_block(const BlockProduct<double>& product);
}  // namespace avx2
namespace avx512 {
void multiply_block(const BlockProduct<float>& product);
void multiply_block(const BlockProduct<double>& product);
}  // namespace avx512

}  // namespace pw
