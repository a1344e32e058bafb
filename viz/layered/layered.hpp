// Layered layout of an acyclic graph (Sugiyama et al. 1981) in nearly linear time, where Graphviz's
// dot takes minutes. Ranks are longest paths, orders come from barycenters, and coordinates from
// pooled averages. Long edges run in lanes, shared by the readers of one value or by the sources of
// one reader.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace pw::viz {

struct LayeredNode {
  double width = 0, height = 0;
  enum class Pin : std::uint8_t { none, top, bottom } pin = Pin::none;
};

struct LayeredEdge {
  std::uint32_t from = 0, to = 0;  ///< from < to; other edges are ignored
};

struct LayeredOptions {
  double between = 18;     ///< distance of neighbors in a rank
  double below = 30;       ///< distance of ranks
  std::uint32_t far = 48;  ///< edges across more ranks get no lane
  std::size_t sweeps = 6;  ///< ordering sweeps
  /// Maximum width of a rank; wider ranks are folded into several, and the longest edges lose their
  /// lanes if there are too many. 0: unlimited.
  double wide = 0;
};

struct Layered {
  std::vector<double> x, y;         ///< centres, by node
  std::vector<std::uint32_t> rank;  ///< by node
  std::vector<double> top, height;  ///< by rank
  /// The x coordinates of each edge at the ranks between its ends; empty for edges between
  /// neighboring ranks and for edges without a lane.
  std::vector<std::vector<double>> lanes;
  double width = 0, total = 0;  ///< bounding box: 0..width, 0..total
  bool folded = false;          ///< some rank was too wide and was folded
};

/// Computes a deterministic layout. Nodes must be in a topological order.
Layered lay_out_layers(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
                       const LayeredOptions& options = {});

}  // namespace pw::viz
