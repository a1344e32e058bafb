// Warnings of passes that changed nothing and rules that never fired.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

/// Appends to the report's warnings, by name. A rule is reported only if its pass rewrote
/// something; passes that were skipped or undone are not reported. With RewriteOptions::stats the
/// warning has the attempts and their rejections.
void warn_of_idle(RunState& run);

}  // namespace pw
