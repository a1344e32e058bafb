// `q, r = fuse`: the left side of a rule as one new op.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dsl/program.hpp"

namespace pw {

/// Of a rule that fuses lists: for each length there is an op, `rule*3`.
struct FusedLists {
  Rule pattern;                       ///< as it was, with `fuse` on the right
  std::set<std::string> params;       ///< names that are no variables
  std::vector<std::string> operands;  ///< of the op: values, and lists by their names
};
/// The right side of such a rule for lists of this length; declares the op where it is not there.
Result<std::vector<Statement>> fused_replacement(Context& context, const Rule& rule,
                                                 std::size_t count);

/// Whether a rule's right side uses `fuse`.
[[nodiscard]] bool has_fuse(const ast::Rule& rule);
/// Declares an op with the rule's name whose body is what the rule replaces, and makes the right
/// side a call of it. Results in binder order; operands are the free values, and those of `given`,
/// in the order of their first use; attributes are the variables that types of operands do not
/// bind. An attribute that the pattern opens is captured, so that the op can repeat it. False, and
/// diagnostics, when there is no such op.
bool lower_fuse(Context& context, const Program& program, Rule& rule, Diagnostics& out);

}  // namespace pw
