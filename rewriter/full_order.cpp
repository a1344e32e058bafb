// Exports FullOrder.
#include "rewriter/full_order.hpp"

#include <algorithm>

namespace pw {

void FullOrder::reset(const Graph& graph) {
  next_.assign(graph.node_bound(), {});
  previous_.assign(graph.node_bound(), {});
  first_ = graph.first();
  last_ = graph.last();
  for (NodeId n = first_; n.valid(); n = graph.next(n)) {
    next_[n.index] = graph.next(n);
    previous_[n.index] = graph.previous(n);
  }
}

void FullOrder::insert_behind(NodeId before, NodeId n) {
  const std::size_t size = std::max(next_.size(), std::size_t{n.index} + 1);
  if (next_.size() < size) {
    next_.resize(size);
    previous_.resize(size);
  }
  const NodeId after = before.valid() ? next_[before.index] : first_;
  next_[n.index] = after;
  previous_[n.index] = before;
  (before.valid() ? next_[before.index] : first_) = n;
  (after.valid() ? previous_[after.index] : last_) = n;
}

NodeId FullOrder::alive_from(const Graph& graph, NodeId n) const {
  while (n.valid() && !graph.alive(n)) n = next(n);
  return n;
}

}  // namespace pw
