// Products and convolutions by PyTorch's own kernels, which are oneDNN's, where the process has
// loaded it: lent by whoever knows of it, as a BLAS is (blas.hpp).
#pragma once

#include <string>

#include "base/diagnostic.hpp"
#include "tensor/linalg/gemm.hpp"
#include "tensor/window.hpp"

namespace pw {

/// From now on products and convolutions that fit go to the C functions for compiled models of this
/// library, libtorch_cpu, which is loaded already: `aoti_torch_cpu_mkldnn__convolution_pointwise`,
/// `aoti_torch_cpu__linear_pointwise`, and what makes their tensors
/// (torch/csrc/inductor/aoti_torch/c). PW1222 where it is not loaded, or lacks them.
Status lend_torch(const std::string& library);

/// y = x convolved by w, plus a bias an output where there is one; all row-major. False where
/// nothing is lent, and where what stands here is as fast: channels by themselves, and products.
bool lent_convolution(const Convolution& c, const float* x, const float* w, const float* bias,
                      float* y);

/// c (row-major, a.rows × b.columns) = a · b, of f32. False where nothing is lent, for other
/// dtypes, and where the product is too small to be worth the call.
bool lent_product(const Matrix& a, const Matrix& b, float* c);

}  // namespace pw
