// Exports RuleEngine's requeueing: from what a rewrite touched, along the edges of the patterns, to
// the anchors whose matches may hold it.
#include <algorithm>

#include "rewriter/engine.hpp"

namespace pw {

/// Anchors at the end of one way that starts at `node`, each once a round.
void RuleEngine::follow(const WayBack& way, NodeId node, std::vector<NodeId>& out) {
  here_.assign(1, node);
  for (const WayBack::SearchStep& step : way.steps) {
    there_.clear();
    const auto arrive = [&](NodeId n) {
      if (n.valid() && graph_.op(n) == step.to) there_.push_back(n);
    };
    const auto leave = [&](NodeId n, std::size_t slot) {
      const bool down = step.kind == Hop::Kind::user_of_result;
      if (slot >= (down ? graph_.result_count(n) : graph_.operand_count(n))) return;
      const ValueId v = down ? graph_.result(n, slot) : graph_.operand(n, slot);
      if (!v.valid()) return;
      if (step.kind == Hop::Kind::producer) return arrive(graph_.producer(v));
      for (UseId u = graph_.first_use(v); u.valid(); u = graph_.next_use(u)) arrive(graph_.user(u));
    };
    for (NodeId n : here_) {
      leave(n, static_cast<std::size_t>(step.slot));
      if (step.either) leave(n, static_cast<std::size_t>(1 - step.slot));
    }
    if (there_.size() > 1) {
      std::sort(there_.begin(), there_.end());
      there_.erase(std::unique(there_.begin(), there_.end()), there_.end());
    }
    here_.swap(there_);
    if (here_.empty()) return;
  }
  for (NodeId n : here_) {
    if (stamp_[n.index] == round_ || !graph_.alive(n)) continue;
    stamp_[n.index] = round_;
    out.push_back(n);
  }
}

void RuleEngine::wake(NodeId node) {
  const auto waiting = waiters_.find(node.index);
  if (waiting == waiters_.end()) return;
  for (NodeId n : waiting->second) {
    if (!graph_.alive(n) || stamp_[n.index] == round_) continue;
    stamp_[n.index] = round_;
    anchors_.push_back(n);
  }
  waiters_.erase(waiting);
}

void RuleEngine::next_round() {
  ++round_;
  if (stamp_.size() < graph_.node_bound())
    stamp_.resize(graph_.node_bound() + graph_.node_bound() / 8, 0);
}

/// once: nothing is looked for anew, but what waited for a node that changed may go.
void RuleEngine::unpark() {
  bool any = false;
  for (const std::vector<NodeId>* nodes : {&touched_, &erased_})
    for (NodeId n : *nodes) any = waiters_.erase(n.index) > 0 || any;
  if (!any) return;
  for (const Entry& entry : parked_) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), Later{this});
  }
  parked_.clear();
}

void RuleEngine::requeue() {
  next_round();
  anchors_.clear();
  for (NodeId n : touched_) {
    for (const WayBack& way : program_.ways[graph_.op(n).index]) follow(way, n, anchors_);
    if (!waiters_.empty()) wake(n);
  }
  // A dead node keeps its operands: what it no longer is a user of, or no longer forbids.
  for (NodeId n : erased_) {
    if (!waiters_.empty()) wake(n);
    if (!follow_erased_) continue;
    for (const WayBack& way : program_.ways[graph_.op(n).index])
      if (!way.steps.empty()) follow(way, n, anchors_);
  }
  std::sort(anchors_.begin(), anchors_.end());
  const std::vector<NodeId> again = anchors_;
  for (NodeId n : again) attempt(n);
}

}  // namespace pw
