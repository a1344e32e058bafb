// Cross-token ops. A step may run with more rows than tokens only if no op lets one row of the
// tokens dim affect another.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Returns the first node that mixes rows of the tokens symbol, with the reason: "node total (sum)
/// mixes rows: it reduces over dim n". Attention and collectives keep rows separate themselves.
/// Imported ops are unknown and count as mixing. Each combination of op, types and attributes has
/// its body analysed once.
std::optional<std::string> row_mixing(const Graph& graph);

}  // namespace pw
