// All versions of a graph as one: each node once, with the versions in which it is alive. Laid out
// once, so that stepping through the passes changes colours, not places.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/viz.hpp"

namespace pw::viz {

inline constexpr std::uint32_t kNobody = 0xffffffffu;

struct UnionNode {
  NodeId id;  ///< in the graphs of the versions that have it (the last of them, if unrelated)
  std::uint32_t first = 0, last = 0;  ///< versions in which it is alive, inclusive
  std::vector<std::uint32_t>
      changed;  ///< versions that gave it another op, attributes, types or operands of its own
};

struct UnionGraph {
  std::vector<const Version*> versions;
  std::vector<UnionNode> nodes;  ///< in an order in which every edge of every version goes forward
  std::vector<std::vector<std::uint32_t>>
      index;  ///< [version][node id] → position in nodes, or kNobody
  /// Of unrelated versions, [version][value id]: the same value in the next version, or invalid.
  std::vector<std::vector<ValueId>> value_after;

  /// The graph that describes a node: the last version that has it.
  [[nodiscard]] const Graph& graph_of(const UnionNode& node) const {
    return versions[node.last]->graph;
  }
  [[nodiscard]] std::uint32_t position(std::size_t version, NodeId n) const {
    return n.index < index[version].size() ? index[version][n.index] : kNobody;
  }
};

/// `versions` are pointers into the caller's input, at least one. Literals (`constant`) are left
/// out unless returned. Where two versions do not agree on the order of nodes that both have, the
/// later one has nodes of its own for them.
UnionGraph unite(std::vector<const Version*> versions, bool related);

/// A literal is drawn inside its readers.
bool is_inlined(const Graph& graph, NodeId n);

}  // namespace pw::viz
