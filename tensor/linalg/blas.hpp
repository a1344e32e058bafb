// Matrix products by a BLAS that the process has loaded already, as PyTorch brings one: lent by
// whoever knows of it, never looked for.
#pragma once

#include <string>
#include <variant>

#include "base/diagnostic.hpp"
#include "tensor/linalg/gemm.hpp"

namespace pw {

/// From now on products whose operands fit go to `sgemm_` and `dgemm_` of this library, which is
/// loaded already (https://netlib.org/blas), and those of bf16 to `cblas_gemm_bf16bf16f32` where it
/// has that. PW1222 where it is not loaded, or has neither.
Status lend_blas(const std::string& library);

/// c (row-major, a.rows × b.columns) = a · b by the lent library. False where there is none, where
/// it takes no such operands, and where the product is too small to be worth the call.
bool blas_gemm(const Matrix& a, const Matrix& b, float* c);
bool blas_gemm(const Matrix& a, const Matrix& b, double* c);

}  // namespace pw
