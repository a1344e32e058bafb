// Matrix products by a BLAS library that the process has already loaded, such as PyTorch's. A
// caller passes the library; it is never searched for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "base/diagnostic.hpp"
#include "tensor/linalg/gemm.hpp"

namespace pw {

/// Routes suitable products to `sgemm_` and `dgemm_` of this loaded library
/// (https://netlib.org/blas), and bf16 products to `cblas_gemm_bf16bf16f32` if it has that. Fails
/// with PW1222 if the library is not loaded or has neither.
Status lend_blas(const std::string& library);

/// Computes c (row-major, a.rows × b.columns) = a · b with the lent library, plus a row `bias`
/// unless it is null. Returns false if no library is lent, if it does not support the operands, or
/// if the product is too small to justify the call.
bool blas_gemm(const Matrix& a, const Matrix& b, const float* bias, float* c);
bool blas_gemm(const Matrix& a, const Matrix& b, double* c);

/// An f32 matrix in the lent library's own format, for products of `rows` rows
/// (https://www.intel.com/content/www/us/en/docs/onemkl/developer-reference-c: `?gemm_pack`).
struct BlasPanels {
  std::int64_t rows = 0, depth = 0, columns = 0;
  std::shared_ptr<float> data;
};
/// Packs b for left operands of `rows` rows. Without data if the lent library does not pack, or
/// does not support the operand.
[[nodiscard]] BlasPanels blas_panels(std::int64_t rows, const Matrix& b);
/// Computes c (row-major) = a · b plus a row `bias` unless it is null. Returns false if b was
/// packed for another number of rows, or if the library does not support a.
bool blas_gemm(const Matrix& a, const BlasPanels& b, const float* bias, float* c);

}  // namespace pw
