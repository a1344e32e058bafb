// Recursion to any depth, for engines that take their rules once: what a graph needs of recursive
// patterns is opened before a strategy runs on it.
#pragma once

#include <optional>

#include "dsl/ruleset.hpp"

namespace pw {

struct OpenedRules {
  std::optional<RuleSet> rules;  ///< with what was opened; none where nothing was
  Strategy strategy;  ///< with what was opened, and without frontiers
};

/// The rules with every frontier opened that fits the graph, and what that opens, to any depth;
/// nothing where the strategy has no frontiers. Chains that a pass makes longer than they were are
/// matched as far as the levels go that were opened for the others.
std::optional<OpenedRules> open_for(const Graph& graph, const RuleSet& rules,
                                    const Strategy& strategy, const Env& params);

}  // namespace pw
