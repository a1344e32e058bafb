// Recursive patterns of any depth: a rule is unrolled a few levels, and then has frontiers
// (unrolling limits), variants in which a call is still closed. Whoever runs the rules matches
// frontiers too, never applies one, and unrolls one level further where one matches.
#pragma once

#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Appends the variants that are one level deeper, frontiers among them, and returns their ids; the
/// same ids when it is asked again. They have the frontier's rank, and stand in the order of their
/// names, so that nothing depends on when a frontier was opened. Nothing for any other rule.
std::vector<RuleId> open_frontier(const RuleSet& rules, RuleId frontier);

}  // namespace pw
