// Tests whether two graphs are equal up to names and the order of independent nodes, and produces a
// diff otherwise.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Returns an empty string if the graphs are equal; otherwise the differing nodes in the form of
/// graph_diff. Pairs inputs by name, outputs by position, and commutative operands in either order.
/// Ignores dead nodes.
[[nodiscard]] std::string graph_difference(const Graph& expected, const Graph& actual);

}  // namespace pw
