// Views: ops whose result shares its operand's memory.
#pragma once

#include "graph/graph.hpp"

namespace pw {

/// Returns true if a node's only result equals its operand byte for byte, so that both may share
/// memory. Holds for a reshape, and for a view of the same type whose body, if present, is the
/// operand. A slice, a split or a transposition does not qualify.
[[nodiscard]] bool keeps_bytes(const Graph& graph, NodeId node);

}  // namespace pw
