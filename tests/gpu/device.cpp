#include "tests/gpu/device.hpp"

#include <cstdio>
#include <cstdlib>

#include "base/environment.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/cuda_driver.hpp"
#include "cuda/device/preparing_driver.hpp"
#include "tests/backends_cuda/kernel_run.hpp"

namespace pw::test {
namespace {

bool preparing() { return !environment("PW_GPU_PREPARE").empty(); }

[[noreturn]] void skip(const std::string& why) {
  std::fprintf(stderr, "SKIPPED: %s\n", why.c_str());
  std::exit(77);
}

std::unique_ptr<cuda::Driver> open_device(bool strict, bool libraries) {
  cuda::CudaDriverOptions options;
  options.strict = strict;
  options.libraries = libraries;
  options.prepared = environment("PW_GPU_CUBINS");
  auto driver = cuda::CudaDriver::open(options);
  if (!driver) skip(driver.error().front().message);
  return std::move(*driver);
}

std::unique_ptr<cuda::Driver> open(bool strict) {
  if (!on_host()) return open_device(strict, false);
  if (host_compiler().empty()) skip("no C++ compiler on PATH, so kernels do not run on the host");
  if (preparing())
    return std::make_unique<cuda::PreparingDriver>(
        environment("PW_GPU_CUBINS"), cuda::Target{environment("PW_GPU_PREPARE"), strict}, true);
  return std::make_unique<cuda::HostDriver>(cached({.libraries = false}));
}

/// Before main, so that the whole program is one skip.
const std::unique_ptr<cuda::Driver> kDriver = open(true);

}  // namespace

bool on_host() { return environment("PW_GPU_DRIVER") == "host"; }
bool sparing() { return on_host() && !preparing(); }

cuda::Driver& device() { return *kDriver; }

cuda::Driver& device_with_libraries() {
  static const std::unique_ptr<cuda::Driver> driver =
      on_host() ? std::make_unique<cuda::HostDriver>(cached()) : open_device(false, true);
  return *driver;
}

cuda::Driver& device_of_tensor_cores() {
  static const std::unique_ptr<cuda::Driver> driver = open(false);
  return *driver;
}

}  // namespace pw::test
