// Whether all ranks of a group hold the same tensor: declared on inputs, established by all_reduce
// and all_gather over the group, lost by shard and reduce_scatter, kept by every other op that
// computes from replicated operands. Three-valued: an input that is not declared is unknown.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace pw {

/// On `unknown` or `no`, `*why` (if given) names the value that it ends at. What was found is kept
/// in the graph until its next mutation.
[[nodiscard]] Truth is_replicated(const Graph& graph, ValueId value, std::string_view group,
                                  std::string* why = nullptr);

}  // namespace pw
