// `op f: pointwise`: a rule or an alternative of a pattern for each op that has the trait.
#pragma once

#include <vector>

#include "dsl/program.hpp"

namespace pw {

/// The rule itself where it has no such variables; else one for each choice of ops that can be
/// called as it calls them. The op is in brackets behind the name, after the row of a family:
/// `r[relu]`, `r[row_relu]`.
[[nodiscard]] std::vector<ast::Rule> choose_ops(const Context& context, const ast::Rule& rule,
                                                Diagnostics& out);
/// The same of one alternative.
[[nodiscard]] std::vector<ast::Body> choose_ops(const Context& context, const ast::Body& body,
                                                Diagnostics& out);

}  // namespace pw
