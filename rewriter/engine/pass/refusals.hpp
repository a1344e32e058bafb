// Refused matches and the anchors that wait. A match refused for a path or a barrier, or blocked by
// another match, may become legal although none of its nodes changes: its anchor waits at the nodes
// in its way. Changes that the graph does not announce are checked when nothing else is left.
#pragma once

#include <unordered_map>
#include <vector>

#include "rewriter/engine/pass/candidate_legality.hpp"

namespace pw {

class Refusals {
 public:
  explicit Refusals(RunState& run) : run_(run) {}
  /// Returns the verdict of an accepted match. Otherwise counts the refusal, warns of a right side
  /// that cannot be built, lets the anchor wait, and returns null.
  const Verdict* settle(PassRule& rule, NodeId anchor, const GateResult& outcome) {
    if (outcome.verdict == nullptr) note(rule, anchor, outcome);
    return outcome.verdict;
  }
  /// Lets an anchor wait until a node changes.
  void wait_for(NodeId node, NodeId anchor) { waiters_[node.index].push_back(anchor); }
  /// Keeps an anchor for the time when nothing else is left.
  void keep(NodeId anchor) { refused_.push_back(anchor); }
  [[nodiscard]] bool any_waiting() const { return !waiters_.empty(); }
  /// Removes and returns the anchors that wait at a node.
  std::vector<NodeId> wake(NodeId node);
  [[nodiscard]] bool any_kept() const { return !refused_.empty(); }
  /// Removes and returns the kept anchors.
  std::vector<NodeId> take_kept() { return std::exchange(refused_, {}); }
  void clear_waiting() { waiters_.clear(); }
  void clear() {
    waiters_.clear();
    refused_.clear();
  }

 private:
  void note(PassRule& rule, NodeId anchor, const GateResult& outcome);

  RunState& run_;
  /// Candidates by the node in the way. A waiting anchor has no pending entry for the match.
  std::unordered_map<std::uint32_t, std::vector<NodeId>> waiters_;
  std::vector<NodeId> refused_;  ///< with a match that was refused for a path or a barrier
};

}  // namespace pw
