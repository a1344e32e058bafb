// The places of a rule set where several rules run to a fixed point together.
#pragma once

#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// One `greedy { … }`, `walk { … }` or `once { … }`.
struct RulePass {
  const Strategy* strategy = nullptr;
  std::string owner;      ///< the pass or pipeline it stands in
  bool is_owner = false;  ///< it is all of it, so that `apply owner` runs it alone
};
/// Each set of rules once, passes before pipelines. Those of `saturate` state limits of their own.
std::vector<RulePass> rule_passes(const RuleSet& rules);

/// Rules that may be applied again and again to each other's results, and no fuel bounds it: a
/// greedy or a walk by itself, a `repeat` with all its rules.
struct Repetition {
  const Strategy* strategy = nullptr;
  std::string owner;
  std::vector<RuleId> rules;  ///< sorted
};
std::vector<Repetition> repetitions(const RuleSet& rules);

/// How messages and texts call the rule as it was written: "group.rule".
std::string written_name(const Rule& rule);

}  // namespace pw
