// Other orders of the same rewriting: a graph with its nodes in another topological order, rules
// under other ranks, and matches taken at random.
#pragma once

#include <cstdint>

#include "rewriter/rewriter.hpp"

namespace pw {

/// Returns the same graph with its independent nodes in an order drawn by the seed. A graph with
/// effects stays unchanged.
Graph reordered(const Graph& graph, std::uint64_t seed);

/// Gives the rules ranks drawn by the seed.
void shuffle_ranks(RuleSet& rules, std::uint64_t seed);

/// Runs a strategy in which each greedy pass takes a match drawn by the seed among those that need
/// not wait, instead of the first. Quadratic, for small graphs. Other kinds of strategies run as
/// usual. Fuel and limits of the run are `most` rewrites in all.
Result<std::vector<RuleId>> run_at_random(Graph& graph, const RuleSet& rules,
                                          const Strategy& strategy, const Env& params,
                                          std::uint64_t seed, std::size_t most);

}  // namespace pw
