// Concrete sizes for a graph that is to be run only to compare.
#pragma once

#include <optional>
#include <span>

#include "backends/kernel.hpp"
#include "rewriter/matcher/matcher.hpp"

namespace pw {

/// Every symbol of the graph's types: `tokens` for the symbol that steps size (by its role, or else
/// `n`), small numbers for others; each within what the facts say of it.
[[nodiscard]] Symbols sample_symbols(const Graph& graph, std::int64_t tokens);
/// The name of the symbol that a step of this graph sizes; empty when it has none.
[[nodiscard]] std::string sized_symbol(const Graph& graph);
/// The ranks that the collectives of a graph (without bodies) need: what the sizes of its groups
/// divide; 2 where no op says a size; 1 without collectives.
[[nodiscard]] std::int64_t ranks_needed(const Graph& graph);
/// Whether every scatter of a graph (without bodies) gives its ranks equal parts.
[[nodiscard]] bool divides_evenly(const Graph& graph, const Symbols& symbols);
/// The least number of tokens from `least` on that meets the conditions, and that every scatter of
/// the graphs (without bodies) divides; nothing below `most`.
[[nodiscard]] std::optional<std::int64_t> fitting_tokens(std::span<const Graph* const> graphs,
                                                         std::span<const Condition> conditions,
                                                         std::int64_t least,
                                                         std::int64_t most = 4096);
/// Two sequences of together as many tokens as the symbols say, so that row mixing across sequences
/// is seen.
[[nodiscard]] Step sample_step(const Graph& graph, const Symbols& symbols);

}  // namespace pw
