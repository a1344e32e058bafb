// Prepares a pipeline with ranges: the graph of one range, and rules without assumptions.
#pragma once

#include "rewriter/strategies/ranges.hpp"

namespace pw {

/// Restricts the graph's tokens symbol to the range.
void narrow(Graph& graph, TokenRange range);
/// Returns the rules with every `assume` turned into a `where`, which must be proved.
RuleSet without_assumptions(const RuleSet& rules);

}  // namespace pw
