#include "cuda/device/driver.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

bool meet(const std::vector<DeviceTensor>& a, const std::vector<DeviceTensor>& b) {
  return std::any_of(a.begin(), a.end(), [&](const DeviceTensor& x) {
    return std::any_of(b.begin(), b.end(),
                       [&](const DeviceTensor& y) { return x.range().meets(y.range()); });
  });
}

}  // namespace

LaunchCounts counted(const LaunchNode& node) {
  LaunchCounts out;
  ++(node.kind == LaunchNode::Kind::library ? out.library : out.kernels);
  return out;
}

LaunchNode at_addresses(LaunchNode node, std::span<const Address> tensors) {
  std::size_t at = 0;
  for (auto* of : {&node.reads, &node.writes})
    for (DeviceTensor& tensor : *of) tensor.address = tensors[at++];
  return node;
}

bool same_topology(const RecordedGraph& a, const RecordedGraph& b) {
  return !a.condition && !b.condition &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                    [](const LaunchNode& x, const LaunchNode& y) {
                      return x.kind == y.kind && x.after == y.after && x.early == y.early;
                    });
}

bool conflict(const LaunchNode& a, const LaunchNode& b) {
  return meet(a.writes, b.reads) || meet(a.reads, b.writes) || meet(a.writes, b.writes);
}

Ancestors::Ancestors(const RecordedGraph& graph) : words_((graph.nodes.size() + 63) / 64) {
  bits_.resize(words_ * graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (std::size_t before : graph.nodes[i].after) add(i, before);
}

void Ancestors::add(std::size_t node, std::size_t before) {
  for (std::size_t w = 0; w < words_; ++w) bits_[node * words_ + w] |= bits_[before * words_ + w];
  bits_[node * words_ + before / 64] |= std::uint64_t{1} << (before % 64);
}

void order_nodes(RecordedGraph& graph) {
  for (LaunchNode& node : graph.nodes) node.after.clear();
  Ancestors ancestors(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (std::size_t before = i; before-- > 0;) {  // nearest first, because it implies farther ones
      if (ancestors.has(i, before) || !conflict(graph.nodes[before], graph.nodes[i])) continue;
      graph.nodes[i].after.push_back(before);
      ancestors.add(i, before);
    }
    std::reverse(graph.nodes[i].after.begin(), graph.nodes[i].after.end());
  }
}

std::string why_not_early(const RecordedGraph& graph, std::size_t node,
                          const std::set<std::string>& waiting) {
  const LaunchNode& n = graph.nodes[node];
  if (n.kind != LaunchNode::Kind::kernel) return "only kernels wait";
  if (!waiting.contains(n.name)) return "the kernel does not wait first";
  if (n.after.empty()) return "it has no predecessor";
  if (n.after.size() > 1) return "it has several predecessors";
  if (graph.nodes[n.after[0]].kind != LaunchNode::Kind::kernel)
    return "its predecessor is not a kernel of ours";
  return {};
}

void start_early(RecordedGraph& graph, const std::set<std::string>& waiting) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    graph.nodes[i].early = why_not_early(graph, i, waiting).empty();
}

Status check_early(const RecordedGraph& graph, const std::set<std::string>& waiting) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!graph.nodes[i].early) continue;
    if (const std::string why = why_not_early(graph, i, waiting); !why.empty())
      return fail(error_in(fmt::format("{}, node {} ({})", graph.name, i, graph.nodes[i].name),
                           "PW1251", "may start before its predecessor ends, but " + why,
                           "make the edge a full one"));
  }
  return {};
}

LibraryAnswer Driver::calls_library(const ProductCall&, std::span<const DeviceTensor>,
                                    const DeviceTensor&) const {
  return {calls_libraries(), {}};
}

}  // namespace pw::cuda
