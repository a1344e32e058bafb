// Cross-token ops. A step may run with more rows than tokens only if no op lets one row of the
// tokens dim affect another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/graph.hpp"

namespace pw {

/// Whether kernels leave padding rows out of reductions: with the number of valid rows, they do.
enum class Reductions : std::uint8_t { valid_rows, all_rows };

/// Returns the first node that mixes rows of the tokens symbol, with the reason: "node total (sum)
/// mixes rows: it reduces over dim n". Attention and collectives keep rows separate themselves.
/// Imported ops are unknown and count as mixing. Each combination of op, types and attributes has
/// its body analysed once.
std::optional<std::string> row_mixing(const Graph& graph,
                                      Reductions reductions = Reductions::valid_rows);

}  // namespace pw
