// Turns the left side of a rule into one new op: `q, r = fuse`.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "dsl/program.hpp"

namespace pw {

/// Data of a rule that fuses lists: each length has an op, `rule*3`.
struct FusedLists {
  Rule pattern;                       ///< the original, with `fuse` on the right
  std::set<std::string> params;       ///< names that are not variables
  std::vector<std::string> operands;  ///< of the op: values, and lists by their names
};
/// Returns the right side of such a rule for lists of this length; declares the op if necessary.
Result<std::vector<Statement>> fused_replacement(Context& context, const Rule& rule,
                                                 std::size_t count);

/// Returns true if a rule's right side uses `fuse`.
[[nodiscard]] bool has_fuse(const ast::Rule& rule);
/// Declares an op with the rule's name whose body is what the rule replaces, and makes the right
/// side a call of it. Results are in binder order. Operands are the free values, and those of
/// `given`, in the order of their first use. Attributes are the variables that types of operands do
/// not bind. An attribute that the pattern opens is captured, so that the op can repeat it. Returns
/// false, with diagnostics, if there is no such op.
bool lower_fuse(Context& context, const Program& program, Rule& rule, Diagnostics& out);

}  // namespace pw
