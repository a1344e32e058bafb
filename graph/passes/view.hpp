// Views: ops whose result shares its operand's memory.
#pragma once

#include "graph/graph.hpp"

namespace pw {

/// Whether a node's one result is its operand byte for byte, so that both may lie in one place: a
/// reshape, or a view of the same type whose body, if it has one, is the operand. A slice, a split
/// or a transposition is not.
[[nodiscard]] bool keeps_bytes(const Graph& graph, NodeId node);

}  // namespace pw
