// What is different between two graphs, for people: the nodes on one side only, each with its
// neighbours, in the names of the second graph.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Lines with `-` (first graph only), `+` (second only) or nothing (both, next to a difference);
/// `…` stands for what is left out. Nodes are paired from the inputs on and then from the outputs
/// back, so that one difference does not make everything behind it differ. Empty if all is paired.
std::string graph_diff(const Graph& expected, const Graph& actual);

}  // namespace pw
