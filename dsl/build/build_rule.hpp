// From one rule's tree to a Rule: sub-expressions flattened into pattern nodes, outputs and
// consumed values worked out.
#pragma once

#include <optional>

#include "dsl/ruleset.hpp"
#include "dsl/syntax/names.hpp"

namespace pw {

/// Fills nodes, values, members, guards, replacement, outputs and consumed values. Nothing, with
/// diagnostics, if the left side is malformed.
std::optional<Rule> build_rule(const Context& context, const ast::Rule& rule,
                               const RuleNames& names, Diagnostics& out);

}  // namespace pw
