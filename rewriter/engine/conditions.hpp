// Conditions that an undecided `assume` puts on the steps of a graph.
#pragma once

#include <vector>

#include "rewriter/matcher/matcher.hpp"

namespace pw {

/// Adds the conditions under which an undecided guard holds. A comparison of dims becomes one that
/// can be evaluated; any other guard keeps its text only.
void note_conditions(Context& context, const Graph& graph, const Expr& guard, const Env& env,
                     std::vector<Condition>& out);

}  // namespace pw
