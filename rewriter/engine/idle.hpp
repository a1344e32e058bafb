// Warnings of passes that changed nothing and rules that never fired.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

/// Appends warnings to the report, by name. A rule is reported only if its pass rewrote something;
/// skipped or undone passes are not reported. With RewriteOptions::stats a warning includes the
/// attempts and their rejections.
void warn_of_idle(RunState& run);

}  // namespace pw
