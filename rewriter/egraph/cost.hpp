// What a graph costs, as `best of … by COST` and `saturate … cost COST` count it: numbers that are
// read from the graph alone, so that the same graph costs the same everywhere.
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
/// One size for every symbol of the facts: the largest it may have, but at most 8192, and a
/// multiple of what is known to divide it.
[[nodiscard]] SymbolSizes representative_sizes(const Facts& facts);

/// Of one value of the type; 0 where it is unknown. A symbol without a size counts 8192.
[[nodiscard]] std::int64_t bytes_of(const Context& context, TypeId type, const SymbolSizes& sizes);
/// `bytes` is the sum over the nodes that `ops` counts, of their distinct operands and their
/// results. Sums stop at the largest number.
[[nodiscard]] std::int64_t cost_of(const Graph& graph, Cost cost);
/// What one node adds to it.
[[nodiscard]] std::int64_t cost_of(const Graph& graph, NodeId node, Cost cost,
                                   const SymbolSizes& sizes);

}  // namespace pw
