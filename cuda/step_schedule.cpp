// Makes a runtime on a device without memory or kernels, and records a step. The model of times is
// stream_model.hpp; keys and values of earlier tokens are not counted, because their number is not
// a part of the graph.
#include "cuda/step_schedule.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/edge_choice.hpp"
#include "cuda/runtime.hpp"

namespace pw::cuda {
namespace {

/// Gives out addresses of memory that does not exist.
class ImaginedDriver final : public HostDriver {
 public:
  explicit ImaginedDriver(std::string_view arch) : HostDriver({.libraries = false}), arch_(arch) {}
  [[nodiscard]] std::string device() const override { return "an imagined " + arch_; }
  [[nodiscard]] std::string arch() const override { return arch_; }
  Result<Address> allocate(std::int64_t bytes) override {
    constexpr Address kAligned = 256;
    const Address out = next_;
    next_ += (static_cast<Address>(std::max<std::int64_t>(bytes, 1)) + kAligned - 1) / kAligned *
             kAligned;
    return out;
  }
  void release(Address) override {}
  Status write(Address, const void*, std::int64_t) override { return {}; }
  Status read(void*, Address, std::int64_t) override { return {}; }
  Status fill(Address, int, std::int64_t) override { return {}; }
  Status load(std::span<const Kernel>) override { return {}; }

 private:
  std::string arch_;
  Address next_ = Address{1} << 20;
};

class StepDescriber {
 public:
  StepDescriber(const Runtime& runtime, std::string_view arch)
      : model_(arch, runtime.kernels()), weights_(runtime.weights()) {
    for (const Kernel& kernel : runtime.kernels())
      if (waits_first(kernel)) waiting_.insert(kernel.name);
  }

  StepSchedule run(const RecordedGraph& graph, std::int64_t tokens) const {
    StepSchedule out;
    out.tokens = tokens;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) out.launches.push_back(launch(graph, i));
    return out;
  }

 private:
  [[nodiscard]] bool is_weight(const DeviceTensor& tensor) const {
    return std::any_of(weights_.begin(), weights_.end(), [&](const DeviceTensor& weight) {
      return weight.address == tensor.address && tensor.address != 0;
    });
  }

  /// Returns true for what launches pass to each other; tables of which few rows are read are not.
  static bool is_written(const RecordedGraph& graph, const DeviceTensor& tensor) {
    const auto is_it = [&](const DeviceTensor& t) { return t.address == tensor.address; };
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const LaunchNode& node) {
      return std::any_of(node.writes.begin(), node.writes.end(), is_it);
    });
  }

  [[nodiscard]] ScheduledLaunch launch(const RecordedGraph& graph, std::size_t i) const {
    const LaunchNode& node = graph.nodes[i];
    const Kernel* kernel = model_.kernel_of(node);
    ScheduledLaunch out;
    out.op = kernel != nullptr ? kernel->op : node.name;
    const bool by_data =  // which tokens of the cache, for example
        kernel != nullptr && kernel->accesses != nullptr && kernel->accesses->by_data.has_value();
    for (const DeviceTensor& t : node.reads) {
      if (is_weight(t))
        out.weight_bytes += t.bytes();
      else if (!by_data && is_written(graph, t))
        out.other_bytes += t.bytes();
    }
    const std::size_t whole = node.writes.size() - (kernel != nullptr ? kernel->paged : 0);
    if (!by_data)
      for (std::size_t w = 0; w < whole; ++w) out.other_bytes += node.writes[w].bytes();
    out.early = node.early;
    if (kernel != nullptr)
      for (const ConstantArgument& c : kernel->prefetched)
        out.prefetched += std::min(c.bytes, kMostPrefetched);
    if (!node.early) out.prefetched = 0;
    out.early_bytes = node.early ? out.weight_bytes : 0;
    out.why = node.early ? proof(graph, i, out) : reason(graph, i);
    StreamedLaunch model = model_.modelled(node);
    model.bytes = out.weight_bytes + out.other_bytes;
    const StreamedLaunch before =
        node.after.empty() ? model : model_.modelled(graph.nodes[node.after[0]]);
    const auto seconds = [&](StreamEdge edge) {
      return seconds_of(model_.machine(), model, edge, before);
    };
    out.full_seconds = seconds(StreamEdge::full);
    out.early_seconds = node.early ? seconds(model_.early_edge(node)) : out.full_seconds;
    return out;
  }

  /// Returns why an edge is full.
  [[nodiscard]] std::string reason(const RecordedGraph& graph, std::size_t i) const {
    std::string out = why_not_early(graph, i, waiting_);
    if (!out.empty()) return out;
    return fmt::format(
        "it would end {:.2f} us later by the model: its blocks and its "
        "predecessor's leave room for more",
        model_.added(graph, i) * 1e6);
  }

  /// States what instantiation checks: see check_early.
  [[nodiscard]] std::string proof(const RecordedGraph& graph, std::size_t i,
                                  const ScheduledLaunch& launch) const {
    const LaunchNode& before = graph.nodes[graph.nodes[i].after[0]];
    const Kernel* kernel = model_.kernel_of(before);
    return fmt::format("{} precedes its wait, and its only predecessor is {}, launch {}",
                       launch.prefetched > 0 ? "only a prefetch of weights" : "nothing",
                       kernel != nullptr ? kernel->op : before.name, graph.nodes[i].after[0]);
  }

  EdgeChooser model_;
  std::vector<DeviceTensor> weights_;
  std::set<std::string> waiting_;
};

}  // namespace

std::size_t StepSchedule::early() const {
  return static_cast<std::size_t>(std::count_if(launches.begin(), launches.end(),
                                                [](const ScheduledLaunch& l) { return l.early; }));
}

Result<StepSchedule> schedule_of(const StitchedGraph& stitched, const Graph& source,
                                 const Plan& plan, std::string_view arch, std::int64_t tokens,
                                 const RuntimeOptions& options) {
  ImaginedDriver driver(arch);
  const auto runtime = PW_TRY(Runtime::make(stitched, source, plan, driver, options));
  PW_TRY(runtime->reserve_weights());
  const RecordedGraph graph = PW_TRY(runtime->record_step(tokens, 1));
  return StepDescriber(*runtime, arch).run(graph, tokens);
}

}  // namespace pw::cuda
