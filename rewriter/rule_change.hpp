// What an edit of a rule can change of a run that is kept alive.
#pragma once

#include <string>

#include "dsl/run_rules.hpp"
#include "rewriter/verdicts.hpp"

namespace pw {

/// All that a rule says, but for where it is written.
[[nodiscard]] std::string text_of(const RunRules& rules, RuleId id);
/// Whether both match the same nodes and values, whatever they ask of types and attributes, and
/// whatever they make of it.
[[nodiscard]] bool same_pattern(const Rule& a, const Rule& b);
[[nodiscard]] bool same_recipe(const Recipe& a, const Recipe& b);

}  // namespace pw
