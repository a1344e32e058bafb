// A canonical text of everything that a rule's verdict depends on: the rule as written and as
// checked, params, tables, and every op in the rule or in a body, with bodies. Equal texts have
// equal verdicts.
#pragma once

#include <optional>
#include <string>

#include "dsl/ruleset.hpp"

namespace pw {

/// Returns nothing for a rule that calls an extern, whose behavior has no text.
[[nodiscard]] std::optional<std::string> rule_text(const RuleSet& rules, RuleId rule,
                                                   const Env& params);
/// Returns a version that changes with the program's verdicts and the presence of a solver.
[[nodiscard]] std::string proof_version();

}  // namespace pw
