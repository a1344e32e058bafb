// The definition of greedy, walk and once, in the words of the language reference. Before each
// rewrite all matches of all rules are found again, and the first that need not wait is replaced.
// Quadratic; kept as the oracle of the engine.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

StopReason run_rules_naive(RunState& run, const Strategy& strategy, PassStats& stats);

}  // namespace pw
