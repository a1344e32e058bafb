// `saturate { rules } nodes N rounds K cost c`: equality saturation, that is rewriting that keeps
// both sides, until no rule adds anything or a limit is reached; then the cheapest of all equal
// graphs is kept.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

/// In place; the graph is left as it was where nothing cheaper is found. The history gets one match
/// for each application that the result is made of. Graphs with effects are refused (PW1112).
Result<StopReason> run_saturation(RunState& run, const Strategy& strategy, PassStats& stats);

}  // namespace pw
