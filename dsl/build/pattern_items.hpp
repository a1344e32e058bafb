// Shared patterns as they are put into rules: types of their operands and results stand in each
// alternative, and there is an alternative for each choice of op variables.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Replaces the patterns of the program that need it. After ops are declared.
void settle_patterns(const Context& context, Program& program, Diagnostics& out);

}  // namespace pw
