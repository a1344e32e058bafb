// Expands a rule that uses shared patterns and optional nodes into one rule for each choice.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Number of levels of a recursive pattern that are opened when rules are loaded.
inline constexpr std::int64_t kOpenLevels = 2;

/// One choice of alternatives of shared patterns and of the presence of optional nodes.
struct ChosenRule {
  ast::Rule rule;
  bool frontier = false;  ///< it still contains a call of a recursive pattern, `levels` deep
};

/// Returns one rule for each choice, in text order, the frontiers last; the rule itself if it has
/// no choice. Names local to a pattern are renamed, so that uses stay distinct. Nothing, and
/// diagnostics, if a use disagrees with its pattern or there are too many choices.
std::vector<ChosenRule> expand_choices(const Context& context, const Program& program,
                                       const ast::Rule& rule, std::int64_t levels,
                                       Diagnostics& out);
/// Returns a pattern that matches whenever a rule opened from this frontier matches: the statements
/// above its open calls, all of them replaced, without guards and right side. A call that leaves a
/// choice becomes a free value.
ast::Rule frontier_pattern(const Program& program, const ast::Rule& rule);

/// Checks that each alternative binds the results, that ops are known, and that a pattern calls
/// itself only if it is recursive, with a node on the way and an alternative that does not. Returns
/// false if no pattern can be expanded.
bool check_patterns(const Context& context, const Program& program, Diagnostics& out);

}  // namespace pw
