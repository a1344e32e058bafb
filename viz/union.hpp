// Merges all versions of a graph: each node once, with the versions in which it is alive. The union
// is laid out once, so that stepping through the passes changes colors, not positions.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/viz.hpp"

namespace pw::viz {

inline constexpr std::uint32_t kNobody = 0xffffffffu;

struct UnionNode {
  NodeId id;  ///< in the graphs of the versions that have it (the last one if unrelated)
  std::uint32_t first = 0, last = 0;  ///< first and last version in which it is alive
  std::vector<std::uint32_t>
      changed;  ///< versions that changed its op, attributes, types, or operands
};

struct UnionGraph {
  std::vector<const Version*> versions;
  std::vector<UnionNode> nodes;  ///< in a topological order of every version
  std::vector<std::vector<std::uint32_t>>
      index;  ///< [version][node id] → position in nodes, or kNobody
  /// For unrelated versions, [version][value id]: the same value in the next version, or invalid.
  std::vector<std::vector<ValueId>> value_after;

  /// Returns the last version that has the node.
  [[nodiscard]] const Graph& graph_of(const UnionNode& node) const {
    return versions[node.last]->graph;
  }
  [[nodiscard]] std::uint32_t position(std::size_t version, NodeId n) const {
    return n.index < index[version].size() ? index[version][n.index] : kNobody;
  }
};

/// Merges the versions, at least one; they must outlive the result. Omits literals (`constant`)
/// unless they are outputs. If two versions disagree on the order of common nodes, the later
/// version gets separate nodes for them.
UnionGraph unite(std::vector<const Version*> versions, bool related);

/// Returns true for a literal that is drawn inside its readers.
bool is_inlined(const Graph& graph, NodeId n);

}  // namespace pw::viz
