// Matrix products of row-major or transposed operands of any dtype, computed in f32 or f64. Blocks
// of `b` are converted on demand, so a large weight is never converted as a whole. Invariant: an
// element's value depends only on its row of `a`, its column of `b` and their length. It does not
// depend on the number of rows and columns, the element's place, strides or threads. Only a lent
// library (blas.hpp, torch_kernels.hpp) has its own order of additions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/dtype.hpp"

namespace pw {

/// A matrix in memory; steps count elements.
struct Matrix {
  DType dtype = DType::f32;
  const std::byte* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_step = 0, column_step = 1;
};

/// Computes c (row-major, a.rows × b.columns) = a · b on the machine's vector units and cores.
void gemm(const Matrix& a, const Matrix& b, float* c);
void gemm(const Matrix& a, const Matrix& b, double* c);

/// Computes the same of f32 matrices, plus a row `bias` unless it is null, by the kernel that is
/// fastest for them, as measured (choices.hpp): a lent library's, or ours.
void fastest_gemm(const Matrix& a, const Matrix& b, const float* bias, float* c);

/// Computes an integer product modulo 2^64.
void gemm(const Matrix& a, const Matrix& b, std::int64_t* c);

/// Computes one product for each pair, of equal extents, with results one after another. Many
/// products are divided among the cores; for few products each one is divided.
void gemm_each(std::span<const Matrix> a, std::span<const Matrix> b, float* c);
void gemm_each(std::span<const Matrix> a, std::span<const Matrix> b, double* c);

/// Computes the product with one fused multiply-add chain per element in ascending k: slow, and
/// identical on every machine.
void gemm_in_order(const Matrix& a, const Matrix& b, float* c);

}  // namespace pw
