// The order list of a graph with its dead nodes left in: where a node stood that may come back.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace pw {

class FullOrder {
 public:
  /// Of the nodes that are alive now.
  void reset(const Graph& graph);
  [[nodiscard]] NodeId next(NodeId n) const { return at(next_, n); }
  [[nodiscard]] NodeId previous(NodeId n) const { return at(previous_, n); }
  [[nodiscard]] NodeId first() const { return first_; }
  [[nodiscard]] NodeId last() const { return last_; }
  /// Puts `n` behind `before`; an invalid id is the beginning.
  void insert_behind(NodeId before, NodeId n);
  /// `n` or the first behind it that is alive; invalid: none.
  [[nodiscard]] NodeId alive_from(const Graph& graph, NodeId n) const;

 private:
  [[nodiscard]] static NodeId at(const std::vector<NodeId>& list, NodeId n) {
    return n.index < list.size() ? list[n.index] : NodeId();
  }
  std::vector<NodeId> next_, previous_;
  NodeId first_, last_;
};

}  // namespace pw
