// Finds the anchors to match again: from the nodes that a rewrite touched, along the edges of the
// patterns, to the anchors whose matches may contain them.
//
// For each op the match program has the ways back: the edge sequences from a pattern node of this
// op to the anchor of its rule, equal ones once (find_ways_back in anchor.cpp). Each is followed in
// the graph from each touched node, breadth first, so that a node reached by several paths is
// expanded once. Invariant: any match that contains a touched node has its anchor among those
// found. They are matched again, each once and in the order of their ids. Cost: the nodes within
// the patterns' reach of a change.
#include <algorithm>

#include "rewriter/engine/engine.hpp"

namespace pw {

/// Calls `arrive` for the nodes at the other end of one step.
template <class Arrive>
void RuleEngine::leave(const WayBack::SearchStep& step, NodeId n, Arrive&& arrive) const {
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

/// Adds an anchor to those to be matched again, unless it was erased.
void RuleEngine::ask_again(NodeId anchor, std::vector<NodeId>& out) {
  if (graph_.alive(anchor)) out.push_back(anchor);
}

void RuleEngine::sort_once(std::vector<NodeId>& nodes) {
  if (nodes.size() < 2) return;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

/// Follows one way back from `node` to its anchors.
void RuleEngine::follow(const WayBack& way, NodeId node, std::vector<NodeId>& out) {
  if (way.steps.empty()) return ask_again(node, out);
  if (way.steps.size() > 1) return follow_far(way, node, out);
  leave(way.steps.front(), node, [&](NodeId n) { ask_again(n, out); });
}

/// Follows a way breadth first, so that a node reached by several paths is expanded once.
void RuleEngine::follow_far(const WayBack& way, NodeId node, std::vector<NodeId>& out) {
  here_.assign(1, node);
  for (const WayBack::SearchStep& step : way.steps) {
    there_.clear();
    for (NodeId n : here_) leave(step, n, [&](NodeId to) { there_.push_back(to); });
    sort_once(there_);
    here_.swap(there_);
    if (here_.empty()) return;
  }
  for (NodeId n : here_) ask_again(n, out);
}

void RuleEngine::wait_for(NodeId node, NodeId anchor) { waiters_[node.index].push_back(anchor); }

void RuleEngine::wake(NodeId node) {
  const auto waiting = waiters_.find(node.index);
  if (waiting == waiters_.end()) return;
  for (NodeId n : waiting->second) ask_again(n, anchors_);
  waiters_.erase(waiting);
}

/// Collects the anchors from touched and erased nodes and from waiters, and matches each once, by
/// id. Anchors that the sweep will reach are left to it.
void RuleEngine::requeue() {
  anchors_.clear();
  for (NodeId n : touched_) {
    for (const WayBack& way : program_.ways_of(graph_.op(n))) follow(way, n, anchors_);
    if (!waiters_.empty()) wake(n);
  }
  // A dead node keeps its operands: it no longer uses them, and no longer blocks matches there.
  for (NodeId n : erased_) {
    if (!waiters_.empty()) wake(n);
    if (!follow_erased_) continue;
    for (const WayBack& way : program_.ways_of(graph_.op(n)))
      if (!way.steps.empty()) follow(way, n, anchors_);
  }
  sort_once(anchors_);
  again_.swap(anchors_);
  for (NodeId n : again_)
    if (!comes_to(n)) attempt(n);
}

}  // namespace pw
