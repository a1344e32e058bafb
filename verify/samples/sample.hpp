// Concrete sizes for graphs that run only to be compared.
#pragma once

#include <optional>
#include <span>

#include "backends/kernel.hpp"
#include "rewriter/matcher/matcher.hpp"

namespace pw {

/// Assigns every symbol of the graph's types. The token symbol (by role, otherwise `n`) gets
/// `tokens`, others get small numbers; all respect the facts.
[[nodiscard]] Symbols sample_symbols(const Graph& graph, std::int64_t tokens);
/// Returns the name of the symbol that a step's token count determines; empty if there is none.
[[nodiscard]] std::string sized_symbol(const Graph& graph);
/// Returns the world size that the collectives of a graph (without bodies) need: a multiple of its
/// group sizes, 2 if no op states a size, 1 without collectives.
[[nodiscard]] std::int64_t ranks_needed(const Graph& graph);
/// Returns true if every scatter of a graph (without bodies) splits evenly over its ranks.
[[nodiscard]] bool divides_evenly(const Graph& graph, const Symbols& symbols);
/// Returns the least token count in `least` … `most` that satisfies the conditions and makes every
/// scatter of the graphs (without bodies) even; nothing if there is none.
[[nodiscard]] std::optional<std::int64_t> fitting_tokens(std::span<const Graph* const> graphs,
                                                         std::span<const Condition> conditions,
                                                         std::int64_t least,
                                                         std::int64_t most = 4096);
/// Returns a step of two sequences whose tokens add up to the token symbol, so that mixing of rows
/// across sequences is detected.
[[nodiscard]] Step sample_step(const Graph& graph, const Symbols& symbols);

}  // namespace pw
