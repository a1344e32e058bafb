// Delta debugging of graphs: finds a small graph that still has a property.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "graph/graph.hpp"

namespace pw {

/// Predicate that holds if a smaller graph still has the property.
using StillShows = std::function<bool(const Graph&)>;

/// Returns the nodes and the literals that only they read. Their other operands become inputs;
/// values that others read, or that the graph returns, become outputs. Values keep their names;
/// writes of inputs are omitted.
Graph graph_around(const Graph& graph, std::span<const NodeId> nodes);

/// Removes nodes at the end, turns results into inputs and drops outputs, in ever smaller blocks of
/// the order (Zeller's ddmin), until nothing more can be removed or `tries` graphs were tested. The
/// given graph must have the property, and so does the result.
Graph reduce_graph(const Graph& graph, const StillShows& shows, std::size_t tries);

}  // namespace pw
