// Products and convolutions by PyTorch's own kernels, which are oneDNN's, if the process has loaded
// PyTorch. A caller passes the library, as for a BLAS (blas.hpp).
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.hpp"
#include "tensor/array.hpp"
#include "tensor/linalg/gemm.hpp"
#include "tensor/window.hpp"

namespace pw {

/// Routes suitable products and convolutions to the C functions for compiled models of
/// libtorch_cpu, which is already loaded: `aoti_torch_cpu_mkldnn__convolution_pointwise`,
/// `aoti_torch_cpu__linear_pointwise`, and the functions that make their tensors
/// (torch/csrc/inductor/aoti_torch/c). Fails with PW1222 if the library is not loaded or lacks
/// them. The functions below that it lacks stay unused: `aoti_torch_cpu_mm_out`,
/// `aoti_torch_cpu_addmm_out`, `aoti_torch_cpu_bmm_out`, and
/// `aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu`.
Status lend_torch(const std::string& library);

/// Convolves x by w and adds a bias per output, unless it is null; all arrays are row-major, and of
/// f32 or bf16. Returns the row-major result [batch, outputs, height, width] in PyTorch's memory;
/// nothing if no library is lent, for other dtypes, and for windows of three dims.
[[nodiscard]] std::optional<Array> lent_convolution(const Convolution& c, const Array& x,
                                                    const Array& w, const Array* bias);

/// Computes c (row-major, a.rows × b.columns) = a · b in f32, plus a row `bias` unless it is null.
/// Returns false if no library is lent, for other dtypes, and if the product is too small to
/// justify the call.
bool lent_product(const Matrix& a, const Matrix& b, const float* bias, float* c);

/// Computes y = a · b of bf16 matrices, plus a row `bias` unless it is null, or of batches of bf16
/// or f32 matrices, without a bias; y is row-major. Returns false if no library is lent, for other
/// operands, and if the product is too small to justify the call.
bool lent_product(const Array& a, const Array& b, const Array* bias, const Array& y);

/// Computes softmax(q · kᵀ · scale) · v of f32 or bf16 operands [batch, heads, rows, width], and
/// the logarithms of the sums; with `causal` a query sees the keys up to its own number. Returns
/// false like `lent_product`.
bool lent_attention(const Array& q, const Array& k, const Array& v, bool causal, double scale,
                    const Array& y, const Array& lse);

}  // namespace pw
