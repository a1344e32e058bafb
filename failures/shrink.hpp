// A graph with smaller numbers in its shapes and attributes.
#pragma once

#include "rewriter/analysis/orders/reduce.hpp"

namespace pw {

/// Divides the whole numbers of the graph's text, all together and then one value by one, as far as
/// what comes of it reads as a graph, whose types are inferred again, and shows what is looked for.
Graph shrink_dims(const Graph& graph, const StillShows& shows);

}  // namespace pw
