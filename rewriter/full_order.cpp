// Exports FullOrder.
#include "rewriter/full_order.hpp"

namespace pw {

void FullOrder::reset(const Graph& graph) {
  places_.resize(graph.node_bound());
  for (std::size_t i = 0; i < places_.size(); ++i)
    places_[i] = {graph.previous(NodeId(i)), graph.next(NodeId(i))};
  first_ = graph.first();
  last_ = graph.last();
}

void FullOrder::insert_behind(NodeId before, NodeId n) {
  if (places_.size() <= n.index) places_.resize(n.index + n.index / 2 + 1);
  const NodeId after = before.valid() ? places_[before.index].next : first_;
  places_[n.index] = {before, after};
  (before.valid() ? places_[before.index].next : first_) = n;
  (after.valid() ? places_[after.index].previous : last_) = n;
}

NodeId FullOrder::alive_from(const Graph& graph, NodeId n) const {
  while (n.valid() && !graph.alive(n)) n = next(n);
  return n;
}

}  // namespace pw
