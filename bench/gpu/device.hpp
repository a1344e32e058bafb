// The device that benchmarks of this folder run on.
#pragma once

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "cuda/device/cuda_driver.hpp"

namespace pw::bench {

/// With kernels that were compiled before from the folder `cubins`, where one is named. Without a
/// device the program ends with 5.
inline std::unique_ptr<cuda::Driver> open_device(const std::string& cubins, bool libraries) {
  cuda::CudaDriverOptions options;
  options.prepared = cubins;
  options.libraries = libraries;
  auto driver = cuda::CudaDriver::open(options);
  if (driver) return std::move(*driver);
  std::cerr << driver.error().front().message << "; " << driver.error().front().help << "\n";
  std::exit(5);
}

}  // namespace pw::bench
