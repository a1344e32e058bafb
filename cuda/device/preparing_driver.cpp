#include "cuda/device/preparing_driver.hpp"

#include "cuda/device/cubin_cache.hpp"

namespace pw::cuda {

std::string PreparingDriver::device() const { return "the host, preparing for " + target_.arch; }

Status PreparingDriver::load(std::span<const Kernel> kernels) {
  for (const Kernel& kernel : kernels)
    if (auto done = prepare_cubin(nvrtc_, folder_, kernel, target_); !done) return done;
  return run_ ? HostDriver::load(kernels) : std::monostate{};
}

class PreparingDriver::Nothing final : public GraphExecutable {
 public:
  Result<std::optional<std::size_t>> add(const RecordedGraph&) override { return 0; }
  Status replay(std::size_t) override { return {}; }
  [[nodiscard]] std::size_t current() const override { return 0; }
};

Result<std::unique_ptr<GraphExecutable>> PreparingDriver::instantiate(RecordedGraph graph) {
  if (run_) return HostDriver::instantiate(std::move(graph));
  return std::make_unique<Nothing>();
}

Status PreparingDriver::launch(const LaunchNode& node) {
  return run_ ? HostDriver::launch(node) : std::monostate{};
}

Status PreparingDriver::run(Executable& executable, std::span<const DeviceTensor> inputs,
                            std::span<const DeviceTensor> outputs, const RunContext& context) {
  return run_ ? HostDriver::run(executable, inputs, outputs, context) : std::monostate{};
}

}  // namespace pw::cuda
