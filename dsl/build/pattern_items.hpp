// Prepares shared patterns for inlining: copies the types of their operands and results into each
// alternative, and makes an alternative for each choice of op variables.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Replaces the patterns of the program that need preparation. Requires declared ops.
void settle_patterns(const Context& context, Program& program, Diagnostics& out);

}  // namespace pw
