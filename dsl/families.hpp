// Expands families: `rule r for k in Table` becomes one rule for each row, with the row's cells in
// place of `k.column`.
#pragma once

#include "dsl/syntax/ast.hpp"
#include "graph/build.hpp"

namespace pw {

struct Variant {
  std::string row;  ///< empty: the rule is not a family
  ast::Rule rule;   ///< with cells substituted; `name` is "r" or "r[row]"
  Env constants;    ///< value cells as `k.column`
};

/// Returns all variants in row order; one for a plain rule. Cells that name ops are substituted for
/// callees, the others in expressions. An attribute whose cell is `none` is omitted if the op has
/// no attribute of that name.
std::vector<Variant> expand_family(const Context& context, const ast::Rule& rule,
                                   const ast::Table* table, Diagnostics& out);
/// Checks that rows have a cell for each column, that a column holds ops in all rows (or none), or
/// values in all rows, and that names are unique.
void check_table(Context& context, const ast::Table& table, Diagnostics& out);

}  // namespace pw
