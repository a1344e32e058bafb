// What a pipeline with ranges runs on: the graph of one range, and rules that assume nothing.
#pragma once

#include "rewriter/strategies/ranges.hpp"

namespace pw {

/// The graph's tokens symbol is known to lie in the range from here on.
void narrow(Graph& graph, TokenRange range);
/// The rules with every `assume` made a `where`: it must be proved.
RuleSet without_assumptions(const RuleSet& rules);

}  // namespace pw
