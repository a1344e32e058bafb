// Checks the graph's invariants: order, links, arity, attributes, inferred types. Runs after import
// and, on request, after each pass.
#pragma once

#include "graph/graph.hpp"

namespace pw {

/// Returns a diagnostic for each violation (at most 20); empty for a well-formed graph.
Diagnostics verify(const Graph& graph);

}  // namespace pw
