// The graph's invariants: order, links, arity, attributes, types as inferred. Run after import and,
// on request, each pass.
#pragma once

#include "graph/graph.hpp"

namespace pw {

/// Empty when the graph is well formed; otherwise a diagnostic for each violation (at most 20).
Diagnostics verify(const Graph& graph);

}  // namespace pw
