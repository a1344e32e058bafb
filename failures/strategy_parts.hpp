// Decomposes a strategy into removable units, and builds a strategy from a subset of them.
#pragma once

#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// A rule at one place of a strategy, or an indivisible part: a built-in pass, a `repeat`, ….
struct StrategyUnit {
  std::string name;       ///< name of the rule as written, the built-in pass, or the strategy
  std::size_t place = 0;  ///< units with one place came from one greedy, walk, or once
  Strategy strategy;      ///< restricted to this rule
};

/// Returns the units in order, through sequences and named passes; drops conditions on whole
/// graphs.
std::vector<StrategyUnit> units_of(const RuleSet& rules, const Strategy& strategy);
/// Returns the strategy that runs these units in order.
Strategy strategy_of(const std::vector<StrategyUnit>& units);
/// Returns `pass name = …` or `pipeline name { … }` in the rule language; empty if a unit is an
/// unnamed strategy of another kind.
std::string strategy_text(const RuleSet& rules, const std::vector<StrategyUnit>& units,
                          const std::string& name);

}  // namespace pw
