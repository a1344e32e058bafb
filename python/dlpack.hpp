// Tensors of other libraries, by the DLPack protocol: CPU memory that is copied.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "tensor/tensor.hpp"

namespace pw::python {

/// Of an object with __dlpack__ and __dlpack_device__. `what` is named in errors: memory of a
/// device, and elements that are not of this dtype (for bf16 and fp8 their bits are, too).
Tensor tensor_of_dlpack(const pybind11::handle& given, DType dtype, const std::string& what);

}  // namespace pw::python
