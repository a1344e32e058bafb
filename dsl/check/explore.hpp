// Checks of `explore` items.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Checks that names exist, numbers are in their ranges, values are of their param's kind, and no
/// clause is repeated. PW0454, PW0455, PW0456.
void check_explores(const Program& program, RuleSet& set, Diagnostics& out);

}  // namespace pw
