// Finds the places of a rule set where several rules run to a fixed point together.
#pragma once

#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// One `greedy { … }`, `walk { … }` or `once { … }`.
struct RulePass {
  const Strategy* strategy = nullptr;
  std::string owner;      ///< the pass or pipeline that contains it
  bool is_owner = false;  ///< the owner consists of it, so that `apply owner` runs it alone
};
/// Returns each set of rules once, passes before pipelines. `saturate` has its own limits, and is
/// excluded.
std::vector<RulePass> rule_passes(const RuleSet& rules);

/// Rules that may be applied without bound to each other's results, without fuel: a greedy or a
/// walk alone, a `repeat` with all its rules.
struct Repetition {
  const Strategy* strategy = nullptr;
  std::string owner;
  std::vector<RuleId> rules;  ///< sorted
};
std::vector<Repetition> repetitions(const RuleSet& rules);

/// Returns the name of the rule as written, for messages and texts: "group.rule".
std::string written_name(const Rule& rule);

}  // namespace pw
