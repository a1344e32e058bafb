// Matrix products by a BLAS library that the process has already loaded, such as PyTorch's. A
// caller passes the library; it is never searched for.
#pragma once

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

}  // namespace pw
