#include "cuda/device/driver.hpp"

#include <algorithm>

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

LibraryAnswer Driver::calls_library(const ProductCall&, std::span<const DeviceTensor>,
                                    const DeviceTensor&) const {
  return {calls_libraries(), {}};
}

}  // namespace pw::cuda
