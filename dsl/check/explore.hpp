// Checks of `explore` items.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Names are of what there is, numbers are in their ranges, values are of their param's kind, and
/// a clause stands once. PW0454, PW0455, PW0456.
void check_explores(const Program& program, RuleSet& set, Diagnostics& out);

}  // namespace pw
