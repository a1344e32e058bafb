// The groups of ranks that nodes of a graph name, and what is said of their sizes: a node whose op
// has a `world` says how many ranks the group has that it names, for all others that name it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

struct NamedGroup {
  NodeId node;
  std::string group;
  std::int64_t ranks = 0;  ///< 0: the node does not say
};

/// Whether there may be a node that says how many ranks a group has. By the ops alone.
[[nodiscard]] bool may_size_groups(const Graph& graph);
/// The number that a node says; 0 where it says none.
[[nodiscard]] std::int64_t stated_ranks(const Graph& graph, NodeId node);
/// Of all nodes that name a group, in order.
[[nodiscard]] std::vector<NamedGroup> named_groups(const Graph& graph);

}  // namespace pw
