// Builds the right side of a rule for one match, either to replace the matched nodes or in addition
// to them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/build.hpp"
#include "rewriter/matcher/matcher.hpp"
#include "rewriter/strategies/layout.hpp"

namespace pw {

/// Appends the nodes of the right side at the graph's insertion point. `options` sets their labels;
/// the attributes that `..` copies are added here.
Status build_right_side(Graph& graph, const Rule& rule, const Match& match, Env& env,
                        BuildOptions options);

/// An output of the rule, or one element of a list.
struct OutputPair {
  std::string name;  ///< in the rule
  ValueId from, to;  ///< the matched value, and the value that the right side makes of it
};
/// Returns the pairs of outputs; `env` is the one after build_right_side. Fails with N06 if the
/// right side makes a list of another length, and with N07 if it makes none.
Result<std::vector<OutputPair>> outputs_of(const Graph& graph, const RuleLayout& layout,
                                           const Match& match, const Env& env);

/// Returns the bindings of the pattern's values by name, an element of a list as `xs[0]`.
std::vector<std::pair<std::string, ValueId>> bindings_of(const Rule& rule, const Match& match);

}  // namespace pw
