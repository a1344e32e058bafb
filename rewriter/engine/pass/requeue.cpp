// Finds the anchors to match again: from the nodes that a rewrite touched, along the edges of the
// patterns, to the anchors whose matches may contain them.
//
// For each op the match program has the ways back: the edge sequences from a pattern node of this
// op to the anchor of its rule, equal ones once (find_ways_back in anchor.cpp). Each is followed in
// the graph from each touched node, breadth first, so that a node reached by several paths is
// expanded once. Invariant: any match that contains a touched node has its anchor among those
// found. They are matched again, each once and in the order of their ids. Cost: the nodes within
// the patterns' reach of a change.
#include "rewriter/engine/pass/requeue.hpp"

#include <algorithm>

namespace pw {

/// Calls `arrive` for the nodes at the other end of one step.
template <class Arrive>
void Requeue::leave(const WayBack::SearchStep& step, NodeId n, Arrive&& arrive) const {
  const bool down = step.kind == Hop::Kind::user_of_result;
  const std::size_t count = down ? graph_.result_count(n) : graph_.operand_count(n);
  const auto through = [&](std::size_t slot) {
    if (slot >= count) return;
    const ValueId v = down ? graph_.result(n, slot) : graph_.operand(n, slot);
    if (!v.valid()) return;
    if (step.kind == Hop::Kind::producer) {
      const NodeId producer = graph_.producer(v);
      if (producer.valid() && graph_.op(producer) == step.to) arrive(producer);
      return;
    }
    for (UseId u = graph_.first_use(v); u.valid(); u = graph_.next_use(u))
      if (const NodeId user = graph_.user(u); graph_.op(user) == step.to) arrive(user);
  };
  through(static_cast<std::size_t>(step.slot));
  if (step.either) through(static_cast<std::size_t>(1 - step.slot));
}

void Requeue::sort_once(std::vector<NodeId>& nodes) {
  if (nodes.size() < 2) return;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

void Requeue::follow(const WayBack& way, NodeId node, std::vector<NodeId>& out) {
  if (way.steps.empty()) return add(node, out);
  if (way.steps.size() > 1) return follow_far(way, node, out);
  leave(way.steps.front(), node, [&](NodeId n) { add(n, out); });
}

/// Follows a way breadth first, so that a node reached by several paths is expanded once.
void Requeue::follow_far(const WayBack& way, NodeId node, std::vector<NodeId>& out) {
  here_.assign(1, node);
  for (const WayBack::SearchStep& step : way.steps) {
    there_.clear();
    for (NodeId n : here_) leave(step, n, [&](NodeId to) { there_.push_back(to); });
    sort_once(there_);
    here_.swap(there_);
    if (here_.empty()) return;
  }
  for (NodeId n : here_) add(n, out);
}

void Requeue::wake(NodeId node) {
  for (NodeId n : refusals_.wake(node)) add(n, anchors_);
}

const std::vector<NodeId>& Requeue::anchors_after(const Delta& delta) {
  anchors_.clear();
  for (NodeId n : delta.touched) {
    for (const WayBack& way : pass_.program.ways_of(graph_.op(n))) follow(way, n, anchors_);
    if (refusals_.any_waiting()) wake(n);
  }
  // A dead node keeps its operands: it no longer uses them, and no longer blocks matches there.
  for (NodeId n : delta.erased) {
    if (refusals_.any_waiting()) wake(n);
    if (!pass_.any_lists) continue;
    for (const WayBack& way : pass_.program.ways_of(graph_.op(n)))
      if (!way.steps.empty()) follow(way, n, anchors_);
  }
  sort_once(anchors_);
  return anchors_;
}

}  // namespace pw
