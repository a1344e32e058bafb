// What ops are declared to be, on samples: `commutative` and `associative` are believed by cse and
// by the matcher, `view` by whoever plans memory, so that a false one gives wrong numbers.
#pragma once

#include <vector>

#include "verify/rule_check.hpp"

namespace pw {

/// A check for each trait of the ops with a body that the rule set's own files declare, in their
/// order, called `commutative f`: the verdict of the rule that the trait states, f(x, y) => f(y,
/// x). Groupings are only compared on ordinary numbers: no sum of floats survives the edges. A
/// view's elements are elements of its operand.
std::vector<RuleCheck> check_traits(const RuleSet& rules, const RuleCheckOptions& options = {});
/// The same of the ops that the text of this graph declares and uses.
std::vector<RuleCheck> check_traits(const Graph& graph, const RuleCheckOptions& options = {});

/// PW1320 with a sample, for an op of that graph, or of a rule file outside of the library, whose
/// trait is false; from few samples, so that it costs nothing to ask before each use.
Status refuse_false_traits(const Graph& graph);
Status refuse_false_traits(const RuleSet& rules);

}  // namespace pw
