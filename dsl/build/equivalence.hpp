// `lhs <=> rhs`: two rules, `r[forward]` and `r[backward]`.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// The two halves, with the guards and `given` of both. Types stated on the left side constrain the
/// backward half too, so that it inverts the forward half. Nothing, with a diagnostic, for a
/// family.
std::vector<ast::Rule> directions_of(const ast::Rule& rule, Diagnostics& out);
/// greedy, walk and once need a direction: both would undo each other for ever. Such a rule is
/// nothing that runs by its own name.
void check_directions(const Program& program, RuleSet& set, Diagnostics& out);

}  // namespace pw
