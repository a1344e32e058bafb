// Imports tensors of other libraries by the DLPack protocol: CPU memory, copied.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "tensor/tensor.hpp"

namespace pw::python {

/// Copies an object with __dlpack__ and __dlpack_device__. Raises an error that names `what` for
/// device memory, or for another dtype (bf16 and fp8 also accept their bits).
Tensor tensor_of_dlpack(const pybind11::handle& given, DType dtype, const std::string& what);

}  // namespace pw::python
