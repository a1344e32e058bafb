// The order list of a graph with its dead nodes left in: where a node stood that may come back.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace pw {

class FullOrder {
 public:
  /// Of the nodes that are alive now.
  void reset(const Graph& graph);
  [[nodiscard]] NodeId next(NodeId n) const { return places_[n.index].next; }
  [[nodiscard]] NodeId previous(NodeId n) const { return places_[n.index].previous; }
  [[nodiscard]] NodeId first() const { return first_; }
  [[nodiscard]] NodeId last() const { return last_; }
  /// Puts `n` behind `before`; an invalid id is the beginning.
  void insert_behind(NodeId before, NodeId n);
  /// `n` or the first behind it that is alive; invalid: none.
  [[nodiscard]] NodeId alive_from(const Graph& graph, NodeId n) const;

 private:
  struct Place {
    NodeId previous, next;
  };
  std::vector<Place> places_;
  NodeId first_, last_;
};

}  // namespace pw
