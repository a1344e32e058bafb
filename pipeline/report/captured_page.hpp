// The page of a captured CUDA graph: the graph, and a tab each for its kernels, its critical path
// and its edges.
#pragma once

#include <string>

#include "graph/captured/captured_graph.hpp"

namespace pw {

/// Draws the page. Long lists are cut; the graph's file has them in full.
Result<std::string> captured_page(const CapturedLaunches& captured);

}  // namespace pw
