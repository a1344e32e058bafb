// Phase 1 of a layered layout: the rank of each node, from the top.
// Ports are pinned: input ports stay in the top rank, and output ports share the bottom one.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/layered/layered.hpp"

namespace pw::viz {

/// Returns true if an edge takes part in the layout: nodes are in topological order.
[[nodiscard]] inline bool is_forward(const LayeredEdge& edge) { return edge.from < edge.to; }
/// Returns the distance next to a node; ports may be close together.
[[nodiscard]] inline double gap(const LayeredNode& node, const LayeredOptions& options) {
  return node.pin == LayeredNode::Pin::none ? options.between : options.between / 2;
}

struct Ranks {
  std::vector<std::uint32_t> of;  ///< by node
  std::uint32_t count = 0;
  bool folded = false;  ///< a rank was too wide
};
/// Every forward edge points down, except between nodes that are pinned to one rank.
[[nodiscard]] Ranks rank_nodes(const std::vector<LayeredNode>& nodes,
                               const std::vector<LayeredEdge>& edges,
                               const LayeredOptions& options);

}  // namespace pw::viz
