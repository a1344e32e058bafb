// The CUDA driver, loaded when first asked for. The same binary runs with and without it.
#pragma once

#include <map>

#include "codegen/cache/cache.hpp"
#include "cuda/device/driver.hpp"

namespace pw::cuda {

enum class DriverState : std::uint8_t {
  absent,     ///< no libcuda
  stub,       ///< the toolkit's stub library, for linking only
  too_old,    ///< lacks functions of CUDA 12.0
  no_device,  ///< a driver without a device, or one that cannot start
  ok,
};
[[nodiscard]] std::string_view name(DriverState state);

struct DriverStatus {
  DriverState state = DriverState::absent;
  std::string text;  ///< version, device and architecture, or what is missing
};

struct CudaDriverOptions {
  /// Of libcuda; empty: $PWR_CUDA_DRIVER, else libcuda.so.1 by the loader's path.
  std::string library;
  bool strict = false;
  CompileCache* cache = nullptr;  ///< of cubins
  /// A folder with the cubins of prepare_cubin(), for machines without NVRTC; what is not there is
  /// compiled where there is one.
  std::string prepared;
  bool libraries = true;  ///< matrix products by cuBLASLt, where it is there; never if strict
  std::string cublaslt;   ///< the file; empty: see LtLibrary::open
};

class CudaDriver final : public Driver {
 public:
  /// The state of the driver on this machine. Never fails.
  [[nodiscard]] static DriverStatus probe(const CudaDriverOptions& options = {});
  /// The first device. PW1260 with the status where there is none.
  static Result<std::unique_ptr<CudaDriver>> open(const CudaDriverOptions& options = {});
  ~CudaDriver() override;
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  [[nodiscard]] std::string device() const override;
  [[nodiscard]] std::string arch() const override;
  [[nodiscard]] DeviceMemory memory() const override;
  /// Not attention, whose kernels are our own.
  [[nodiscard]] bool calls_libraries() const override { return false; }
  /// Yes where cuBLASLt has an algorithm for it on this device; never if strict, since its order of
  /// summation is its own. Loads the library on the first call.
  [[nodiscard]] LibraryAnswer calls_library(const ProductCall& product,
                                            std::span<const DeviceTensor> reads,
                                            const DeviceTensor& result) const override;
  [[nodiscard]] std::int64_t workspace_bytes() const override;
  [[nodiscard]] Result<Address> allocate(std::int64_t bytes) override;
  void release(Address address) override;
  Status write(Address to, const void* from, std::int64_t bytes) override;
  Status read(void* to, Address from, std::int64_t bytes) override;
  Status fill(Address at, int byte, std::int64_t bytes) override;
  Status load(std::span<const Kernel> kernels) override;
  /// PW1261 where cuBLASLt has no algorithm for one of the products.
  Result<std::unique_ptr<GraphExecutable>> instantiate(RecordedGraph graph) override;
  /// A product that cuBLASLt has no algorithm for runs on the host.
  Status launch(const LaunchNode& node) override;
  Status run(Executable& executable, std::span<const DeviceTensor> inputs,
             std::span<const DeviceTensor> outputs, const RunContext& context) override;

 private:
  struct State;
  class Replay;
  explicit CudaDriver(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pw::cuda
