// Tests of declared op traits on samples. CSE and the matcher rely on `commutative` and
// `associative`, and the memory planner on `view`, so a false trait produces wrong numbers.
#pragma once

#include <vector>

#include "verify/rule_check.hpp"

namespace pw {

/// Checks each trait of ops with a body that the rule set's own files declare, in order. The result
/// `commutative f` is the verdict on the rule f(x, y) => f(y, x). Associativity is compared on
/// ordinary numbers only, because float sums of extreme values always differ. The elements of a
/// view must be elements of its operand.
std::vector<RuleCheck> check_traits(const RuleSet& rules, const RuleCheckOptions& options = {});
/// Checks the traits of the ops that the graph's text declares and uses.
std::vector<RuleCheck> check_traits(const Graph& graph, const RuleCheckOptions& options = {});

/// Fails with PW1320 and a sample if an op of the graph, or of a rule file outside the library, has
/// a false trait. Uses few samples, so that it is cheap before each use.
Status refuse_false_traits(const Graph& graph);
Status refuse_false_traits(const RuleSet& rules);

}  // namespace pw
