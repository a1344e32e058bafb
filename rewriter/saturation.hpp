// `saturate { rules } nodes N rounds K cost c`: applies the rules without taking anything away,
// until nothing new is found or a limit is met, and keeps the cheapest graph among all that are
// equal.
#pragma once

#include "rewriter/run_state.hpp"

namespace pw {

/// In place; the graph is left as it was where nothing cheaper is found. The history gets one match
/// for each application that the result is made of. Graphs with effects are refused (PW1112).
Result<StopReason> run_saturation(RunState& run, const Strategy& strategy, PassStats& stats);

}  // namespace pw
