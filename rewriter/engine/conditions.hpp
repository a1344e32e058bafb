// Conditions that an `assume` puts on the steps of a graph where it is neither proved nor refuted.
#pragma once

#include <vector>

#include "rewriter/matcher/matcher.hpp"

namespace pw {

/// Adds the conditions under which the guard, which is unknown, holds: a comparison of dims each
/// where it is made of those, else one that only has its text.
void note_conditions(Context& context, const Graph& graph, const Expr& guard, const Env& env,
                     std::vector<Condition>& out);

}  // namespace pw
