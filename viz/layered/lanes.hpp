// Phase 2 of a layered layout: lanes, the dummy vertices of long edges.
#pragma once

#include <cstdint>
#include <vector>

#include "viz/layered/layered.hpp"
#include "viz/layered/ranks.hpp"

namespace pw::viz {

inline constexpr std::uint32_t kNoLane = 0xffffffffu;

/// Vertices, nodes first, then lanes; and joins between vertices of neighbouring ranks. Edges of
/// one end point share a chain of lanes: below a node, for its far readers, or above one, for its
/// sources.
struct LaneGraph {
  std::size_t nodes = 0;
  std::vector<double> width;
  std::vector<std::uint32_t> rank;
  std::vector<std::uint32_t> owner;                  ///< the node, or that of the lane
  std::vector<std::uint32_t> first_lane, last_lane;  ///< chains below and above a node
  std::vector<bool> has_lane;                        ///< by edge
  std::vector<bool> to_reader;                       ///< by edge: it runs above its reader
  std::vector<std::uint32_t> up_begin, down_begin;   ///< by vertex: begin in `up` and `down`
  std::vector<std::uint32_t> up, down;               ///< joined vertices
  [[nodiscard]] bool is_lane(std::uint32_t i) const { return i >= nodes; }
};
[[nodiscard]] LaneGraph add_lanes(const std::vector<LayeredNode>& nodes,
                                  const std::vector<LayeredEdge>& edges, const Ranks& ranks,
                                  const LayeredOptions& options);

}  // namespace pw::viz
