// The model gives the difference between the two edges of a node without its bytes, which take as
// long with either.
#include "cuda/edge_choice.hpp"

#include <algorithm>

#include "base/division.hpp"

namespace pw::cuda {

EdgeChooser::EdgeChooser(std::string_view arch, const std::vector<Kernel>& kernels)
    : machine_(stream_machine(arch)) {
  for (const Kernel& kernel : kernels) kernels_.emplace(kernel.name, &kernel);
}

const Kernel* EdgeChooser::kernel_of(const LaunchNode& node) const {
  const auto found = kernels_.find(node.name);
  return node.kind == LaunchNode::Kind::kernel && found != kernels_.end() ? found->second : nullptr;
}

StreamedLaunch EdgeChooser::modelled(const LaunchNode& node) const {
  constexpr std::int64_t kReadBytes = 16, kMostThreads = 1024;  // of 64 registers
  const Kernel* kernel = kernel_of(node);
  StreamedLaunch out;
  if (kernel == nullptr) {  // a call is assumed to fill the device
    out.blocks = machine_.multiprocessors;
    out.ahead = kReadBytes * kMostThreads;
    return out;
  }
  out.blocks = std::max<std::int64_t>(
      ceil_div(node.params.front(), kernel->rows_per_block) * kernel->column_blocks, 1);
  out.resident = kernel->schedule.resident > 0
                     ? kernel->schedule.resident
                     : static_cast<int>(std::max<std::int64_t>(kMostThreads / kernel->threads, 1));
  out.ahead = kReadBytes * kernel->threads * std::clamp(kernel->group_reads, 1, 8);
  out.phases = kernel->phases;
  return out;
}

StreamEdge EdgeChooser::early_edge(const LaunchNode& node) const {
  const Kernel* kernel = kernel_of(node);
  return kernel != nullptr && !kernel->prefetched.empty() ? StreamEdge::reads_first
                                                          : StreamEdge::waits_first;
}

double EdgeChooser::added(const RecordedGraph& graph, std::size_t node) const {
  const LaunchNode& n = graph.nodes[node];
  const StreamedLaunch launch = modelled(n), before = modelled(graph.nodes[n.after.front()]);
  return seconds_of(machine_, launch, early_edge(n), before) -
         seconds_of(machine_, launch, StreamEdge::full, before);
}

void EdgeChooser::choose(RecordedGraph& graph) const {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].early && added(graph, i) > 0) graph.nodes[i].early = false;
}

}  // namespace pw::cuda
