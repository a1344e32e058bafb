// Cross-token ops: a step may run with more rows than it has tokens only if no op lets one row of
// the tokens dim act on another.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.hpp"

namespace pw {

/// The first node that mixes rows of the symbol with the role tokens, and how: "node total (sum)
/// mixes rows: it reduces over dim n". Attention and collectives keep rows apart by themselves, and
/// of ops that are met in a dump nothing is known. Bodies are looked into once for each op, types
/// and attributes.
std::optional<std::string> row_mixing(const Graph& graph);

}  // namespace pw
