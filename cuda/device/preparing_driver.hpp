// A host driver that compiles each kernel for a device into a folder, for a machine without NVRTC
// (CudaDriverOptions::prepared).
#pragma once

#include <string>

#include "cuda/device/host_driver.hpp"
#include "cuda/device/nvrtc.hpp"

namespace pw::cuda {

class PreparingDriver final : public HostDriver {
 public:
  /// Creates the driver; `folder` must exist. With `run`, kernels run on the host as well, which is
  /// slow at a device's sizes.
  PreparingDriver(std::string folder, Target target, bool run)
      : HostDriver({.libraries = false}),
        folder_(std::move(folder)),
        target_(std::move(target)),
        run_(run) {}
  [[nodiscard]] std::string device() const override;
  [[nodiscard]] std::string arch() const override { return target_.arch; }
  Status load(std::span<const Kernel> kernels) override;
  Result<std::unique_ptr<GraphExecutable>> instantiate(RecordedGraph graph) override;
  Status launch(const LaunchNode& node) override;
  Status run(Executable& executable, std::span<const DeviceTensor> inputs,
             std::span<const DeviceTensor> outputs, const RunContext& context) override;

 private:
  class Nothing;
  std::string folder_;
  Target target_;
  bool run_;
  Nvrtc nvrtc_ = Nvrtc::open();
};

}  // namespace pw::cuda
