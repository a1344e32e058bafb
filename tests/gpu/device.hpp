// The driver that these tests run on: the first CUDA device, or with PW_GPU_DRIVER=host the host,
// so that the tests themselves are tested where there is no device. With PW_GPU_PREPARE=sm_90
// besides, the kernels are compiled for that architecture into the folder PW_GPU_CUBINS, from which
// a run on a device without NVRTC takes them.
#pragma once

#include "cuda/device/driver.hpp"

namespace pw::test {

/// Strict: kernels have the bits of the interpreter. Without a device the program has ended before,
/// with exit code 77.
[[nodiscard]] cuda::Driver& device();
/// Like the device above, but not strict: a library, if present, runs the products it supports.
[[nodiscard]] cuda::Driver& device_with_libraries();
/// Like the device above, but not strict and without a library: products run on tensor cores.
[[nodiscard]] cuda::Driver& device_of_tensor_cores();
[[nodiscard]] bool on_host();
/// On the host for its own sake: compiling takes longest there, and some of many cases will do.
[[nodiscard]] bool sparing();

}  // namespace pw::test
