// Makes a runtime on a device without memory or kernels, and records a step. The model of times is
// stream_model.hpp; keys and values of earlier tokens are not counted, because their number is not
// a part of the graph.
#include "cuda/step_schedule.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cuda/compile.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/edge_choice.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/kernels/matmul/scaled_weight.hpp"
#include "cuda/kernels/matmul/streamed_product.hpp"
#include "cuda/runtime.hpp"
#include "exec/dispatch.hpp"

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

NotStreamed not_streamed(const TensorProduct& product, DType stored, std::int64_t rows,
                         std::string_view arch) {
  ProductShape shape = product.shape(rows);
  shape.in_bytes = size_of(stored);
  NotStreamed out{product.op, rows, shape.depth, shape.columns, 0, 0, {}, {}};
  const StreamBound bound = streamed_bound(arch, shape);
  out.streamed_seconds = bound.seconds;
  out.why = fmt::format(
      "kernels that stream weights have at most {} rows: with {} they would take at least {:.2f} "
      "us by the model, because of {}; ",
      kFewRows, rows, bound.seconds * 1e6, bound.bound);
  if (has_tensor_cores(arch, product.in)) {
    const TensorMachine machine = tensor_machine_or_nearest(arch);
    out.seconds = product_time(machine, shape, choose_tile(machine, shape)).seconds;
    out.why += fmt::format("tensor cores take {:.2f} us", *out.seconds * 1e6);
  } else {
    out.why += "a kernel with tiles in shared memory runs instead";
  }
  return out;
}

/// Returns the products of a step, those of equal shapes once.
std::vector<NotStreamed> all_not_streamed(const StitchedGraph& stitched, const Plan& plan,
                                          std::int64_t tokens, std::string_view arch) {
  std::vector<NotStreamed> out;
  const Symbols symbols = symbols_at(plan, tokens);
  for (const PieceClass& c : stitched.classes) {
    Graph piece = stitched.pieces[c.members.front()].graph.compact();
    decompose(piece, [](NodeId, const std::string&) {});
    for (const FoundProduct& found : tensor_products_of(piece)) {
      const auto rows = piece.context().dims.evaluate(found.product.rows, symbols);
      if (!rows || *rows <= kFewRows) continue;
      const auto scaled = scaled_weight(piece, found.nodes.back(), found.product.b);
      NotStreamed one = not_streamed(
          found.product, scaled ? scaled->blocks.weight : found.product.in, *rows, arch);
      const auto same = std::find_if(out.begin(), out.end(), [&](const NotStreamed& other) {
        return std::tie(other.op, other.why, other.depth, other.columns) ==
               std::tie(one.op, one.why, one.depth, one.columns);
      });
      const auto members = static_cast<std::int64_t>(c.members.size());
      if (same == out.end())
        out.emplace_back(std::move(one)).count = members;
      else
        same->count += members;
    }
  }
  return out;
}

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
  StepSchedule out = StepDescriber(*runtime, arch).run(graph, tokens);
  if (options.stream_weights && tokens > kFewRows)
    out.not_streamed = all_not_streamed(stitched, plan, tokens, arch);
  return out;
}

}  // namespace pw::cuda
