// Recursive patterns of any depth: a rule is loaded with a few levels open, and with frontiers, in
// which a call is still closed. Whoever runs the rules looks for frontiers too, never applies one,
// and where one is found adds what it opens to.
#pragma once

#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Appends the variants that are one level deeper, frontiers among them, and returns their ids; the
/// same ids when it is asked again. They have the frontier's rank, and stand in the order of their
/// names, so that nothing depends on when a frontier was opened. Nothing for any other rule.
std::vector<RuleId> open_frontier(const RuleSet& rules, RuleId frontier);

}  // namespace pw
