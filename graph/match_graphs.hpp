// Which inputs and nodes of two graphs correspond, where no journal says so. Found from what is
// sure to what is likely: equal input names, computations that are equal as a whole, names whose
// neighbours agree, equal computations behind or before what is matched, equal surroundings, single
// neighbours of what is matched, and the order among equals. A pair may still differ: graph_diff
// says in what. Takes a bounded number of rounds, each linear in what is not matched yet, but for
// sorting.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

struct GraphMatch {
  /// By node id, or value id, of one graph: that of the other, or an invalid id. Values are results
  /// of matched nodes, and matched inputs.
  std::vector<NodeId> node_after, node_before;
  std::vector<ValueId> value_after, value_before;
  std::size_t steps = 0;  ///< items and edges looked at
};

/// Both graphs must be of one context.
GraphMatch match_graphs(const Graph& before, const Graph& after);

}  // namespace pw
