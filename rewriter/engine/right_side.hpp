// The right side of a rule for one match, whether it replaces what was matched or stands beside it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "rewriter/matcher/matcher.hpp"
#include "rewriter/strategies/layout.hpp"

namespace pw {

/// Appends the nodes of the right side at the graph's insertion point. `options` says how they are
/// labelled; the attributes that `..` copies are added here.
Status build_right_side(Graph& graph, const Rule& rule, const Match& match, Env& env,
                        BuildOptions options);

/// An output of the rule, or one element of a list.
struct OutputPair {
  std::string name;  ///< in the rule
  ValueId from, to;  ///< what it stands for in the match, and what the right side makes of it
};
/// `env` is that after build_right_side. Fails with N06 where the right side makes a list of
/// another length, and with N07 where it makes none.
Result<std::vector<OutputPair>> outputs_of(const Graph& graph, const RuleLayout& layout,
                                           const Match& match, const Env& env);

/// What the names of the pattern's values are bound to, an element of a list as `xs[0]`.
std::vector<std::pair<std::string, ValueId>> bindings_of(const Rule& rule, const Match& match);

}  // namespace pw
