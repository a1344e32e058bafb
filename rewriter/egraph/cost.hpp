// The cost of a graph, as `best of … by COST` and `saturate … cost COST` count it. It is computed
// from the graph alone, so that equal graphs cost the same everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "dsl/build/strategy_options.hpp"
#include "graph/graph.hpp"

namespace pw {

[[nodiscard]] std::optional<Cost> cost_named(std::string_view name);

using SymbolSizes = std::map<std::string, std::int64_t, std::less<>>;
/// Returns one size for every symbol of the facts: the largest allowed, at most 8192, and a
/// multiple of its known divisor.
[[nodiscard]] SymbolSizes representative_sizes(const Facts& facts);

/// Returns the bytes of one value of the type; 0 if it is unknown. A symbol without a size counts
/// 8192.
[[nodiscard]] std::int64_t bytes_of(const Context& context, TypeId type, const SymbolSizes& sizes);
/// Returns the cost of a graph. `bytes` sums, over the nodes that `ops` counts, the sizes of their
/// distinct operands and results. Sums saturate at the largest number.
[[nodiscard]] std::int64_t cost_of(const Graph& graph, Cost cost);
/// Returns what one node adds to the cost.
[[nodiscard]] std::int64_t cost_of(const Graph& graph, NodeId node, Cost cost,
                                   const SymbolSizes& sizes);

}  // namespace pw
