// Builds a Rule from one rule's tree: flattens sub-expressions into pattern nodes, and derives
// outputs and consumed values.
#pragma once

#include <optional>

#include "dsl/ruleset.hpp"
#include "dsl/syntax/names.hpp"

namespace pw {

/// Fills nodes, values, members, guards, replacement, outputs and consumed values. Returns nothing,
/// with diagnostics, if the left side is malformed.
std::optional<Rule> build_rule(const Context& context, const ast::Rule& rule,
                               const RuleNames& names, Diagnostics& out);

}  // namespace pw
