// Requeueing: the anchors that must be matched again after a rewrite. Delta in, anchors out.
#pragma once

#include <vector>

#include "rewriter/engine/pass/pass_state.hpp"
#include "rewriter/engine/pass/refusals.hpp"

namespace pw {

/// Nodes that a rewrite replaced, created, erased and touched. Touched: nodes whose matches may
/// have changed.
struct Delta {
  std::vector<NodeId> own, created, erased, touched;
};

class Requeue {
 public:
  Requeue(const PassState& pass, Refusals& refusals)
      : pass_(pass), graph_(pass.graph), refusals_(refusals) {}
  /// Returns the live anchors whose matches the rewrite may affect, each once, by id. Wakes those
  /// that wait at its nodes. Valid until the next call.
  const std::vector<NodeId>& anchors_after(const Delta& delta);
  /// Follows one way back from `node` to its anchors.
  void follow(const WayBack& way, NodeId node, std::vector<NodeId>& out);
  /// Returns true if a change of the node causes any anchor to be matched again.
  [[nodiscard]] bool leads_anywhere(NodeId node) const {
    return !pass_.program.ways_of(graph_.op(node)).empty() || refusals_.any_waiting();
  }
  /// Returns true if only nodes with changed operands or users need to be touched.
  [[nodiscard]] bool touches_little() const { return pass_.local && !refusals_.any_waiting(); }
  static void sort_once(std::vector<NodeId>& nodes);  ///< each of them once, by id

 private:
  void follow_far(const WayBack& way, NodeId node, std::vector<NodeId>& out);
  template <class Arrive>
  void leave(const WayBack::SearchStep& step, NodeId node, Arrive&& arrive) const;
  void add(NodeId anchor, std::vector<NodeId>& out) const {
    if (graph_.alive(anchor)) out.push_back(anchor);
  }
  void wake(NodeId node);

  const PassState& pass_;
  const Graph& graph_;
  Refusals& refusals_;
  std::vector<NodeId> anchors_, here_, there_;
};

}  // namespace pw
