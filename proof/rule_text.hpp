// All that a rule's proof reads, as text: the rule as it was checked, the params, and every op that
// it or a body names, bodies included. Rules of one text have one proof.
#pragma once

#include <string>

#include "dsl/ruleset.hpp"

namespace pw::proof {

[[nodiscard]] std::string text_of(const RuleSet& rules, RuleId rule, const Env& params);
/// Differs between versions of the engine that may come to another verdict, and by whether there is
/// a solver.
[[nodiscard]] std::string engine_version();

}  // namespace pw::proof
