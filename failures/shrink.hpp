// Reduces the numbers in a graph's shapes and attributes.
#pragma once

#include "rewriter/analysis/orders/reduce.hpp"

namespace pw {

/// Divides the integers in the graph's text, first all together, then one value at a time. A step
/// is kept if the text still parses, with inferred types, and still shows the failure.
Graph shrink_dims(const Graph& graph, const StillShows& shows);

}  // namespace pw
