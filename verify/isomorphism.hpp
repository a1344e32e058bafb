// Are two graphs the same up to names and the order of independent nodes? If not, a diff that a
// person can read.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Empty when equal. Inputs are paired by name, outputs by position, commutative operands in either
/// order; dead nodes do not count. Otherwise the nodes that differ, as graph_diff lists them.
[[nodiscard]] std::string graph_difference(const Graph& expected, const Graph& actual);

}  // namespace pw
