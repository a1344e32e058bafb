// Renames what items declare: ops, patterns, strategies, tables, params and externs, wherever a
// file declares or mentions them. Places in the text do not change.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "dsl/syntax/ast.hpp"

namespace pw {

using NewNames = std::map<std::string, std::string, std::less<>>;

/// New names by old ones, one map for each namespace.
struct ItemNames {
  NewNames callees;     ///< ops and shared patterns
  NewNames strategies;  ///< rules, groups, passes and pipelines; members follow their group
  NewNames params, tables, externs, splits, tests, explores;
  [[nodiscard]] bool empty() const;
};

void rename_items(ast::File& file, const ItemNames& names);
/// Renames the ops that the body of an op calls.
void rename_callees(ast::OpItem& op, const NewNames& callees);

}  // namespace pw
