// Statistics of a graph for the compiler of a pass: how often each op occurs, and how many users a
// result of it has on average. They decide where a rule is anchored, never what it matches.
#pragma once

#include <vector>

#include "graph/graph.hpp"

namespace pw {

struct GraphStatistics {
  std::vector<double> nodes;  ///< by op: how many there are
  std::vector<double> users;  ///< by op: users of one result, on average
  double input_users = 1;     ///< of an input of the graph
  [[nodiscard]] double nodes_of(OpId op) const {
    return op.index < nodes.size() ? nodes[op.index] : 0;
  }
  [[nodiscard]] double users_of(OpId op) const {
    return op.index < users.size() ? users[op.index] : 1;
  }
};

/// Samples at most some thousand nodes, spread over the ids.
GraphStatistics gather_statistics(const Graph& graph);

}  // namespace pw
