// What the CUDA driver's loading finds, with libraries that are in each state.
#include "cuda/device/cuda_driver.hpp"

#include <filesystem>

#include "base/io/file.hpp"
#include "codegen/toolchain.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

/// The status with a library that has these functions.
cuda::DriverStatus status_of(const PrivateFolder& folder, const std::string& functions) {
  static int number = 0;
  const std::vector<std::string> flags{"-std=c++17", "-w"};
  const auto object = Toolchain::find().shared_object("extern \"C\" {" + functions + "}", flags);
  if (!object) FAIL(object.error().front().message);
  const std::string path = folder.path() + "/lib" + std::to_string(number++) + ".so";
  REQUIRE(write_file(path, *object));
  cuda::CudaDriverOptions options;
  options.library = path;
  const auto opened = cuda::CudaDriver::open(options);
  REQUIRE(!opened);
  CHECK(opened.error().front().code == "PW1260");
  const cuda::DriverStatus status = cuda::CudaDriver::probe(options);
  CHECK(opened.error().front().message.find(status.text) != std::string::npos);
  return status;
}

}  // namespace

TEST_CASE("CUDA driver: every state it can be found in", "[cuda]") {
  cuda::CudaDriverOptions nowhere;
  nowhere.library = "/nowhere/libcuda.so.1";
  CHECK(cuda::CudaDriver::probe(nowhere).state == cuda::DriverState::absent);
  if (host_compiler().empty()) {
    WARN("SKIPPED: no C++ compiler on PATH, so there are no libraries to load");
    return;
  }
  const PrivateFolder folder;
  const auto other = status_of(folder, "int something() { return 0; }");
  CHECK(other.state == cuda::DriverState::absent);
  CHECK(other.text.find("is not a CUDA driver") != std::string::npos);
  const auto stub = status_of(folder, "int cuInit(unsigned) { return 34; }");
  CHECK(stub.state == cuda::DriverState::stub);
  const auto old = status_of(folder,
                             "int cuInit(unsigned) { return 0; }"
                             "int cuDriverGetVersion(int* v) { *v = 11040; return 0; }");
  CHECK(old.state == cuda::DriverState::too_old);
  CHECK(old.text.find("CUDA 11.4 and lacks cuGetErrorName") != std::string::npos);
}

TEST_CASE("CUDA driver: the toolkit's stand-in is not taken for a driver", "[cuda]") {
  const std::string path = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (!std::filesystem::exists(path)) {
    WARN("SKIPPED: the CUDA toolkit's libcuda.so for linking is not here");
    return;
  }
  cuda::CudaDriverOptions options;
  options.library = path;
  CHECK(cuda::CudaDriver::probe(options).state == cuda::DriverState::stub);
}
