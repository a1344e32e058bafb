// Other orders of the same rewriting: a graph with its nodes in another topological order, rules
// under other ranks, and matches taken at random.
#pragma once

#include <cstdint>

#include "rewriter/rewriter.hpp"

namespace pw {

/// The same graph, its independent nodes in an order drawn by the seed. One that holds ops with
/// effects stays as it is.
Graph reordered(const Graph& graph, std::uint64_t seed);

/// Gives the rules ranks drawn by the seed.
void shuffle_ranks(RuleSet& rules, std::uint64_t seed);

/// Runs a strategy where each greedy pass takes any match that need not wait, drawn by the seed,
/// and not the first. Quadratic, for small graphs. What is neither a sequence nor greedy runs as it
/// always does. Fuel and limits of the run are `most` rewrites in all.
Result<std::vector<RuleId>> run_at_random(Graph& graph, const RuleSet& rules,
                                          const Strategy& strategy, const Env& params,
                                          std::uint64_t seed, std::size_t most);

}  // namespace pw
