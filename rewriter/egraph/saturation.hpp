// `saturate { rules } nodes N rounds K cost c`: equality saturation. Rewriting keeps both sides
// until no rule adds anything or a limit is reached; then the cheapest of all equal graphs is kept.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

/// Runs in place; the graph stays unchanged if nothing cheaper is found. The history gets one match
/// for each application that contributes to the result. Graphs with effects are refused (PW1112).
Result<StopReason> run_saturation(RunState& run, const Strategy& strategy, PassStats& stats);

}  // namespace pw
