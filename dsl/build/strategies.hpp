// Resolves passes, pipelines and the strategies in them, from the tree.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Fills passes, pipelines and implicit of a set whose rules are built. Diagnoses references to
/// unknown names.
void build_strategies(const Program& program, RuleSet& set, Diagnostics& out);
/// Returns every rule a strategy may apply, its parts included; sorted, unique.
[[nodiscard]] std::vector<RuleId> rules_of(const Strategy& strategy);

}  // namespace pw
