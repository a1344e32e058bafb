// Warnings of passes that changed nothing and rules that never fired.
#pragma once

#include "rewriter/run_state.hpp"

namespace pw {

/// Appends to the report's warnings, by name. A rule is warned of only where its pass did
/// something; passes that were left out or undone are not spoken of.
/// With RewriteOptions::stats it says what the attempts came to.
void warn_of_idle(RunState& run);

}  // namespace pw
