// Splits `lhs <=> rhs` into two rules, `r[forward]` and `r[backward]`.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Returns the two halves, with the guards and `given` of both. Types stated on the left side also
/// constrain the backward half, so that it inverts the forward half. Nothing, with a diagnostic,
/// for a family.
std::vector<ast::Rule> directions_of(const ast::Rule& rule, Diagnostics& out);
/// Checks that greedy, walk and once name a direction: both would undo each other for ever. The
/// rule's own name does not run.
void check_directions(const Program& program, RuleSet& set, Diagnostics& out);

}  // namespace pw
