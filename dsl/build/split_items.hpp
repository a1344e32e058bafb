// `split` and `capture` items: the defaults of the splitter and the planner.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Fills RuleSet::splits; ops must be declared, and `when` may read params only.
void build_splits(const Program& program, RuleSet& set, Diagnostics& out);
/// Fills RuleSet::capture: ranges expanded, sorted, unique.
void build_capture(const Program& program, RuleSet& set, Diagnostics& out);

}  // namespace pw
