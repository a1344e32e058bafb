// Expands `op f: pointwise`: a rule or an alternative of a pattern for each op with the trait.
#pragma once

#include <vector>

#include "dsl/program.hpp"

namespace pw {

/// Returns the rule itself if it has no such variables; else one rule for each choice of ops that
/// accept its calls. The op follows the name in brackets, after the row of a family: `r[relu]`,
/// `r[row_relu]`.
[[nodiscard]] std::vector<ast::Rule> choose_ops(const Context& context, const ast::Rule& rule,
                                                Diagnostics& out);
/// Expands one alternative in the same way.
[[nodiscard]] std::vector<ast::Body> choose_ops(const Context& context, const ast::Body& body,
                                                Diagnostics& out);

}  // namespace pw
