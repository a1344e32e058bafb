// What an `assume` that can be neither proved nor refuted asks of the steps it is used in.
#pragma once

#include <vector>

#include "rewriter/matcher.hpp"

namespace pw {

/// Adds the conditions under which the guard, which is unknown, holds: a comparison of dims each
/// where it is made of those, else one that only has its text.
void note_conditions(Context& context, const Graph& graph, const Expr& guard, const Env& env,
                     std::vector<Condition>& out);

}  // namespace pw
