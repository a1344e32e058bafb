// Convolutions by PyTorch's own kernels, where the process has loaded it: lent by whoever knows of
// it, as products are (blas.hpp).
#pragma once

#include <string>

#include "backends/window.hpp"
#include "base/diagnostic.hpp"

namespace pw {

/// From now on convolutions that fit go to the C functions for compiled models of this library,
/// libtorch_cpu, which is loaded already: `aoti_torch_cpu_convolution` and what makes its tensors
/// (torch/csrc/inductor/aoti_torch/c/shim.h). PW1222 where it is not loaded, or lacks them.
Result<std::monostate> lend_convolutions(const std::string& library);

/// y = x convolved by w, plus a bias an output where there is one; all row-major. False where
/// nothing is lent, and where what stands here is as fast: kernels of one element, and channels by
/// themselves.
bool lent_convolution(const Convolution& c, const float* x, const float* w, const float* bias,
                      float* y);

}  // namespace pw
