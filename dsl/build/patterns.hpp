// Shared patterns and optional nodes: a rule that uses them is expanded to one rule for each
// choice.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// How many levels of a recursive pattern are opened when rules are loaded.
inline constexpr std::int64_t kOpenLevels = 2;

/// A way to choose the alternatives of shared patterns and the presence of optional nodes.
struct ChosenRule {
  ast::Rule rule;
  bool frontier = false;  ///< a call of a recursive pattern, `levels` deep, is still in it
};

/// One rule for each way to choose, in text order, the frontiers last; the rule itself where it has
/// no choice. Names a pattern binds for itself are renamed, so that uses stay apart. Nothing, and
/// diagnostics, when a use disagrees with its pattern or there are too many choices.
std::vector<ChosenRule> expand_choices(const Context& context, const Program& program,
                                       const ast::Rule& rule, std::int64_t levels,
                                       Diagnostics& out);
/// What any match of any rule that comes of this frontier matches too: the statements above its
/// open calls, all of them to be replaced; no guards, no right side. A call that leaves a choice is
/// any value in it.
ast::Rule frontier_pattern(const Program& program, const ast::Rule& rule);

/// Each alternative binds the results; ops are known; a pattern leads back to itself only if it is
/// recursive, with a node on the way, and has an alternative without that. False: none can be
/// expanded.
bool check_patterns(const Context& context, const Program& program, Diagnostics& out);

}  // namespace pw
