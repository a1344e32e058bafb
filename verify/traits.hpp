// What ops are declared to be, on samples: `commutative` and `associative` are believed by cse and
// by the matcher, so that a false one gives wrong numbers.
#pragma once

#include <string>
#include <vector>

#include "verify/rule_check.hpp"

namespace pw {

/// `commutative f`: the verdict of the rule that the trait states, f(x, y) => f(y, x). Groupings
/// are only compared on ordinary numbers: no sum of floats survives the edges.
struct TraitCheck {
  std::string op, trait;
  RuleCheck check;
};

/// The traits of ops that the rule set's own files declare with a body, in their order.
std::vector<TraitCheck> check_traits(const RuleSet& rules, const RuleCheckOptions& options = {});

}  // namespace pw
