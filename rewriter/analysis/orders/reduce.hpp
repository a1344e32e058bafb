// Delta debugging of graphs: the smallest one found that still shows what a caller looks for.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "graph/graph.hpp"

namespace pw {

/// Whether a smaller graph still shows what is looked for.
using StillShows = std::function<bool(const Graph&)>;

/// The nodes and the literals they read alone: what else they read becomes inputs, and what others
/// read of them, or the graph returns, outputs. Values keep their names; writes of inputs are left
/// out.
Graph graph_around(const Graph& graph, std::span<const NodeId> nodes);

/// Cuts off nodes behind others, turns results into inputs and drops outputs, in ever smaller
/// blocks of the order (Zeller's ddmin), until nothing more can go or `tries` graphs were looked
/// at. The graph must show it; what is returned does.
Graph reduce_graph(const Graph& graph, const StillShows& shows, std::size_t tries);

}  // namespace pw
