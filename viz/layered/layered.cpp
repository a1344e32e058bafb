// Layered graph drawing after Sugiyama, Tagawa, and Toda (1981) for graphs that already have a
// topological order. Four phases: ranks by longest paths; dummy vertices (lanes) for long edges,
// shared by all edges of one end point; orders within ranks by barycenter sweeps; coordinates by
// isotonic regression with pooled averages (pool adjacent violators). Optimal orders are NP-hard,
// so the number of sweeps is fixed. Each sweep is O(n log n) in vertices and lanes; edges above a
// maximum span have no lane, which bounds their number.
#include "viz/layered/layered.hpp"

#include <algorithm>
#include <utility>

#include "viz/layered/lanes.hpp"
#include "viz/layered/ranks.hpp"
#include "viz/layered/rows.hpp"

namespace pw::viz {
namespace {

/// Moves the left border to 0.
void place_columns(Layered& out, const LaneGraph& graph, std::vector<double>& x) {
  double left = 0, right = 0;
  for (std::size_t i = 0; i < graph.width.size(); ++i) {
    left = i == 0 ? x[i] - graph.width[i] / 2 : std::min(left, x[i] - graph.width[i] / 2);
    right = i == 0 ? x[i] + graph.width[i] / 2 : std::max(right, x[i] + graph.width[i] / 2);
  }
  for (double& each : x) each -= left;
  out.width = right - left;
  out.x.assign(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(graph.nodes));
}

/// A rank is as high as its highest node; nodes are centered in it.
void place_ranks(Layered& out, std::uint32_t ranks, const std::vector<LayeredNode>& nodes,
                 const LayeredOptions& options) {
  out.height.assign(ranks, 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    out.height[out.rank[i]] = std::max(out.height[out.rank[i]], nodes[i].height);
  double y = 0;
  for (const double height : out.height) {
    out.top.push_back(y);
    y += height + options.below;
  }
  out.total = y - options.below;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    out.y.push_back(out.top[out.rank[i]] + out.height[out.rank[i]] / 2);
}

/// Reads the coordinates of an edge's lanes from its chain, one for each rank that it crosses.
void place_lanes(Layered& out, const LaneGraph& graph, const std::vector<double>& x,
                 const std::vector<LayeredEdge>& edges) {
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const LayeredEdge& edge = edges[e];
    out.lanes.emplace_back();
    if (!graph.has_lane[e]) continue;
    const std::uint32_t span = out.rank[edge.to] - out.rank[edge.from];
    const std::uint32_t first =
        graph.to_reader[e] ? graph.last_lane[edge.to] - (span - 2) : graph.first_lane[edge.from];
    for (std::uint32_t k = 0; k + 1 < span; ++k) out.lanes.back().push_back(x[first + k]);
  }
}

}  // namespace

Layered lay_out_layers(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
                       const LayeredOptions& options) {
  if (nodes.empty()) return {};
  Ranks ranks = rank_nodes(nodes, edges, options);
  const LaneGraph graph = add_lanes(nodes, edges, ranks, options);
  const Rows rows = order_rows(graph, ranks.count, options.sweeps);
  std::vector<double> x = place_rows(graph, rows, nodes, options);
  Layered out;
  out.rank = std::move(ranks.of);
  out.folded = ranks.folded;
  place_columns(out, graph, x);
  place_ranks(out, ranks.count, nodes, options);
  place_lanes(out, graph, x, edges);
  return out;
}

}  // namespace pw::viz
