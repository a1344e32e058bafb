// The ops that each rule removes and adds, read from its text alone. The order of passes and the
// termination proof are computed from this.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

struct Effect {
  RuleId rule;
  std::map<std::string, std::int64_t> consumed;  ///< at least so many nodes of each op
  std::map<std::string, std::int64_t> built;     ///< at most so many
  bool bounded = true;  ///< false: a node is built for each element of a list
};

/// Returns the effect of one variant; a member of a list counts as often as a guard `count(x) >= k`
/// requires, else once.
Effect effect_of(const RuleSet& rules, RuleId rule);

}  // namespace pw
