// `q, r = fuse`: the left side of a rule as one new op.
#pragma once

#include "dsl/program.hpp"

namespace pw {

/// Whether a rule's right side uses `fuse`.
[[nodiscard]] bool has_fuse(const ast::Rule& rule);
/// Declares an op with the rule's name whose body is what the rule replaces, and makes the right
/// side a call of it. Results in binder order; operands are the free values, and those of `given`,
/// in the order of their first use; attributes are the variables that types of operands do not
/// bind. An attribute that the pattern opens is captured, so that the op can repeat it. False, and
/// diagnostics, when there is no such op.
bool lower_fuse(Context& context, const Program& program, Rule& rule, Diagnostics& out);

}  // namespace pw
