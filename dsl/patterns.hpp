// Shared patterns and optional nodes: a rule that uses them becomes one rule a choice.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// One rule for each way to choose the alternatives of shared patterns and the presence of optional
/// nodes, in text order; the rule itself where it has no choice. Names a pattern binds for itself
/// are renamed, so that uses stay apart. Nothing, and diagnostics, when a use disagrees with its
/// pattern or there are too many choices.
std::vector<ast::Rule> expand_choices(const Context& context, const Program& program,
                                      const ast::Rule& rule, Diagnostics& out);
/// Each alternative binds the results; ops are known; no pattern leads back to itself. False: none
/// can be expanded.
bool check_patterns(const Context& context, const Program& program, Diagnostics& out);

}  // namespace pw
