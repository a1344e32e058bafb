// User-defined costs: a table whose only column is called `cost`, with a row for each op and one
// called `other` for the rest. A cell is an expression over the op's attributes and the dims of its
// signature, params, and `bytes`, `read` and `written` of the node.
#pragma once

#include <array>
#include <string_view>

#include "dsl/program.hpp"

namespace pw {

inline constexpr std::string_view kOtherOps = "other";
/// Names that a cell may read for every node, besides params and what its op declares.
inline constexpr std::array<std::string_view, 3> kNodeSizes{"bytes", "read", "written"};

[[nodiscard]] bool is_cost_table(const ast::Table& table);
/// Returns the table of that name, or null.
[[nodiscard]] const ast::Table* find_cost_table(const RuleSet& set, std::string_view name);
/// Checks a table: PW0220 for a row that is not an op, PW0439 for a name that a cell cannot read.
void check_cost_table(const Program& program, const RuleSet& set, const ast::Table& table,
                      Diagnostics& out);

}  // namespace pw
