// The groups of ranks that nodes of a graph name, and their sizes: a node whose op has a `world`
// states the size of the group that it names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

struct NamedGroup {
  NodeId node;
  std::string group;
  std::int64_t ranks = 0;  ///< 0: the node does not state it
};

/// Returns true if some node may state the size of a group. Checks the ops alone.
[[nodiscard]] bool may_size_groups(const Graph& graph);
/// Returns the number that a node states; 0 if it states none.
[[nodiscard]] std::int64_t stated_ranks(const Graph& graph, NodeId node);
/// Returns an entry for each node that names a group, in order.
[[nodiscard]] std::vector<NamedGroup> named_groups(const Graph& graph);

}  // namespace pw
