// Opens the device for the benchmarks of this folder.
#pragma once

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "base/io/file.hpp"
#include "bench/measure.hpp"
#include "cuda/device/cuda_driver.hpp"

namespace pw::bench {

/// Opens a device with the precompiled kernels of the folder `cubins`, if given. Without a device
/// the program exits with 5.
inline std::unique_ptr<cuda::Driver> open_device(const std::string& cubins, bool libraries) {
  cuda::CudaDriverOptions options;
  options.prepared = cubins;
  options.libraries = libraries;
  auto driver = cuda::CudaDriver::open(options);
  if (driver) return std::move(*driver);
  std::cerr << driver.error().front().message << "; " << driver.error().front().help << "\n";
  std::exit(5);
}

/// Returns the Markdown of this file as a part that follows tables; nothing for an empty path.
inline std::string more(const std::string& path) {
  if (path.empty()) return {};
  return "\n" + need(std::make_shared<Context>(), read_file(path));
}

}  // namespace pw::bench
