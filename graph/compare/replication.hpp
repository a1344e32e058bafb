// Determines whether all ranks of a group hold the same tensor. Inputs declare it; all_reduce and
// all_gather over the group establish it; shard and reduce_scatter lose it; every other op keeps it
// if its operands are replicated. Three-valued: an undeclared input is unknown.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace pw {

/// Returns the truth for one value. On `unknown` or `no`, `*why` (if given) names the value that
/// decided. Results are cached in the graph until its next mutation.
[[nodiscard]] Truth is_replicated(const Graph& graph, ValueId value, std::string_view group,
                                  std::string* why = nullptr);

}  // namespace pw
