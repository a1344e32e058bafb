// Finds the corresponding inputs and nodes of two graphs without a journal. A pair may still
// differ; graph_diff reports how. Bounded rounds, each linear in the unmatched items but for
// sorting. The algorithm is described in match_graphs.cpp.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

struct GraphMatch {
  /// Counterpart in the other graph by node id or value id, or an invalid id. Values are results
  /// of matched nodes, and matched inputs.
  std::vector<NodeId> node_after, node_before;
  std::vector<ValueId> value_after, value_before;
  std::size_t steps = 0;  ///< items and edges looked at
};

/// Both graphs must be of one context.
GraphMatch match_graphs(const Graph& before, const Graph& after);

}  // namespace pw
