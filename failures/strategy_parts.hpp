// A strategy as a list of what can be left out of it, and one made of a part of the list.
#pragma once

#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// A rule in one place of a strategy, or what stands there whole: a built-in pass, a `repeat`, ….
struct StrategyUnit {
  std::string name;       ///< of the rule as written, of the built-in pass, or of the strategy
  std::size_t place = 0;  ///< units of one place were one greedy, walk or once
  Strategy strategy;      ///< with this rule only
};

/// In order, through sequences and named passes; conditions on whole graphs are left out.
std::vector<StrategyUnit> units_of(const RuleSet& rules, const Strategy& strategy);
/// What runs these units, in order.
Strategy strategy_of(const std::vector<StrategyUnit>& units);
/// `pass name = …` or `pipeline name { … }` as the language writes it; empty where a unit is an
/// unnamed strategy of another kind.
std::string strategy_text(const RuleSet& rules, const std::vector<StrategyUnit>& units,
                          const std::string& name);

}  // namespace pw
