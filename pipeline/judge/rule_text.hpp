// All that a rule's proof and samples read, as text: the rule as it was written and as it was
// checked, the params and tables, and every op that it or a body names, bodies included. Rules of
// one text have one verdict.
#pragma once

#include <optional>
#include <string>

#include "dsl/ruleset.hpp"

namespace pw {

/// Nothing of a rule that calls an extern: what that does is in no text.
[[nodiscard]] std::optional<std::string> rule_text(const RuleSet& rules, RuleId rule,
                                                   const Env& params);
/// Differs between programs that may come to another verdict, and by whether there is a solver.
[[nodiscard]] std::string proof_version();

}  // namespace pw
