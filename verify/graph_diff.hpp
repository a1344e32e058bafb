// A readable diff of two graphs: the unpaired nodes with their neighbors, in the names of the
// second graph.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Returns lines with `-` (first graph only), `+` (second only), or a blank (context), and `…` for
/// omitted nodes; empty if all nodes are paired. Pairing proceeds from the inputs forwards and then
/// from the outputs backwards, so one difference does not affect all later nodes.
std::string graph_diff(const Graph& expected, const Graph& actual);

}  // namespace pw
