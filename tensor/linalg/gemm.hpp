// Matrix products of row-major or transposed operands of any dtype, computed in f32 or f64: blocks
// of `b` are converted as they are needed, so that a large weight is never converted whole. An
// element's value depends on its row of `a`, its column of `b`, and their length: neither on the
// number of rows and columns, nor on where it stands, nor on strides and threads. Only what a lent
// library computes (blas.hpp, lent_torch.hpp) has that library's order of additions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/dtype.hpp"

namespace pw {

/// A matrix in memory, steps in elements.
struct Matrix {
  DType dtype = DType::f32;
  const std::byte* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_step = 0, column_step = 1;
};

/// c (row-major, a.rows × b.columns) = a · b. Uses the machine's vector instructions and its cores.
void gemm(const Matrix& a, const Matrix& b, float* c);
void gemm(const Matrix& a, const Matrix& b, double* c);

/// Of integers, modulo 2^64.
void gemm(const Matrix& a, const Matrix& b, std::int64_t* c);

/// A product a pair, of equal extents, one result behind the other. Many of them are divided among
/// the cores; of few, each one is.
void gemm_each(std::span<const Matrix> a, std::span<const Matrix> b, float* c);
void gemm_each(std::span<const Matrix> a, std::span<const Matrix> b, double* c);

/// The same, one fused multiply-add chain an element in ascending k: slow, and the same on every
/// machine.
void gemm_in_order(const Matrix& a, const Matrix& b, float* c);

}  // namespace pw
