// The help line for each near-miss code.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Empty where nothing can be said in general. `at`: the node it stopped at; may be invalid.
std::string help_for(const Graph& graph, std::string_view code, NodeId at);

}  // namespace pw
