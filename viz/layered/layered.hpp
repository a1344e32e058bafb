// A layered layout of a graph that has an order, in time close to linear: what Graphviz's dot needs
// minutes for. Ranks by the longest path, orders by barycentres, places by pooled averages. Far
// edges run in lanes, which the readers of one value share, or the sources of one reader.
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
  std::uint32_t from = 0, to = 0;  ///< from < to; others are left out of the layout
};

struct LayeredOptions {
  double between = 18;     ///< of neighbours in a rank
  double below = 30;       ///< of ranks
  std::uint32_t far = 48;  ///< an edge over more ranks gets no lane
  std::size_t sweeps = 6;  ///< of ordering
  /// A rank of more than this is folded into several, and the longest edges get no lanes where
  /// there would be too many; 0: not so.
  double wide = 0;
};

struct Layered {
  std::vector<double> x, y;         ///< centres, by node
  std::vector<std::uint32_t> rank;  ///< by node
  std::vector<double> top, height;  ///< by rank
  /// By edge: where it crosses the ranks between its ends; empty for neighbours, and for edges
  /// without a lane.
  std::vector<std::vector<double>> lanes;
  double width = 0, total = 0;  ///< everything lies in 0..width, 0..total
  bool folded = false;          ///< a rank was too wide, and is several
};

/// Deterministic. Nodes are given in an order in which every edge goes forwards.
Layered lay_out_layers(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
                       const LayeredOptions& options = {});

}  // namespace pw::viz
