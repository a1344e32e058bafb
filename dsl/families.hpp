// Families: `rule r for k in Table` becomes one rule a row, with the row's cells in place of
// `k.column`.
#pragma once

#include "dsl/syntax/ast.hpp"
#include "graph/build.hpp"

namespace pw {

struct Variant {
  std::string row;  ///< empty: the rule is no family
  ast::Rule rule;   ///< cells put in; `name` is "r" or "r[row]"
  Env constants;    ///< value cells as `k.column`
};

/// All variants in row order; one for a plain rule. Cells that name ops go into callees, the others
/// into expressions. An attribute that is `none` by its cell is left out where the op has no
/// attribute of that name.
std::vector<Variant> expand_family(const Context& context, const ast::Rule& rule,
                                   const ast::Table* table, Diagnostics& out);
/// Rows have a cell a column; a column holds ops in all rows (or none), or values in all rows;
/// names are unique.
void check_table(Context& context, const ast::Table& table, Diagnostics& out);

}  // namespace pw
