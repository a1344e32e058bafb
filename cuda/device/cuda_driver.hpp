// The CUDA driver, loaded on first use, so that one binary runs with and without it.
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

/// Returns $PWR_CUDA_DRIVER, or libcuda.so.1 on the loader's path.
[[nodiscard]] std::string cuda_library_path();

struct CudaDriverOptions {
  /// Path of libcuda; empty: cuda_library_path().
  std::string library;
  int device = 0;  ///< index of the device
  bool strict = false;
  CompileCache* cache = nullptr;  ///< cache of cubins
  /// Folder with cubins of prepare_cubin(), for machines without NVRTC; missing cubins are compiled
  /// if NVRTC is present.
  std::string prepared;
  bool libraries = true;  ///< matrix products by cuBLASLt, if present; never if strict
  std::string cublaslt;   ///< path; empty: see LtLibrary::open
};

class CudaDriver final : public Driver {
 public:
  /// Returns the state of the driver on this machine. Never fails.
  [[nodiscard]] static DriverStatus probe(const CudaDriverOptions& options = {});
  /// Opens a device and retains its primary context. Fails with PW1260 and the status if there is
  /// none.
  static Result<std::unique_ptr<CudaDriver>> open(const CudaDriverOptions& options = {});
  ~CudaDriver() override;
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  [[nodiscard]] std::string device() const override;
  [[nodiscard]] std::string arch() const override;
  [[nodiscard]] DeviceMemory memory() const override;
  /// Returns false, because attention uses our own kernels.
  [[nodiscard]] bool calls_libraries() const override { return false; }
  /// Returns yes if cuBLASLt has an algorithm for the product on this device. Never if strict,
  /// since its summation order is its own. Loads the library on the first call.
  [[nodiscard]] LibraryAnswer calls_library(const ProductCall& product,
                                            std::span<const DeviceTensor> reads,
                                            const DeviceTensor& result) const override;
  [[nodiscard]] std::int64_t workspace_bytes() const override;
  [[nodiscard]] Result<Address> allocate(std::int64_t bytes) override;
  void release(Address address) override;
  Status write(Address to, const void* from, std::int64_t bytes) override;
  Status read(void* to, Address from, std::int64_t bytes) override;
  Status fill(Address at, int byte, std::int64_t bytes) override;
  Status signal(Address at, std::int64_t value) override;
  Status load(std::span<const Kernel> kernels) override;
  /// Fails with PW1261 if cuBLASLt has no algorithm for one of the products.
  Result<std::unique_ptr<GraphExecutable>> instantiate(RecordedGraph graph) override;
  /// Launches one node. A product without a cuBLASLt algorithm runs on the host.
  Status launch(const LaunchNode& node) override;
  Result<std::unique_ptr<StreamLaunch>> prepare(LaunchNode node) override;
  Status fill_on(Stream stream, Address at, int byte, std::int64_t bytes) override;
  Status enter() override;
  Status run(Executable& executable, std::span<const DeviceTensor> inputs,
             std::span<const DeviceTensor> outputs, const RunContext& context) override;

 private:
  struct State;
  class Replay;
  struct MadeGraph;
  class GraphMaker;
  class KernelOnStream;
  class ProductOnStream;
  class CopyOnStream;
  explicit CudaDriver(std::unique_ptr<State> state);
  static Result<MadeGraph> make(State& state, const RecordedGraph& graph);
  std::unique_ptr<State> state_;
};

}  // namespace pw::cuda
