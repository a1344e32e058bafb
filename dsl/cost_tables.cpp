#include "dsl/cost_tables.hpp"

#include <algorithm>
#include <set>

#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

void names_in(const Expr& expr, std::set<std::string>& out) {
  if (expr.kind == Expr::Kind::path || expr.kind == Expr::Kind::star) out.insert(expr.text);
  for (const Expr& arg : expr.args) names_in(arg, out);
}

/// Returns the attributes, and the names in the types of operands.
std::set<std::string> names_of(const Op& op) {
  std::set<std::string> out;
  for (const AttributeDecl& attribute : op.attributes) out.insert(attribute.name);
  for (const OperandDecl& operand : op.operands)
    if (operand.type && !operand.variadic)
      for (const Expr& dim : operand.type->dims) names_in(dim, out);
  return out;
}

}  // namespace

bool is_cost_table(const ast::Table& table) {
  return table.columns.size() == 1 && table.columns.front() == "cost";
}

const ast::Table* find_cost_table(const RuleSet& set, std::string_view name) {
  for (const ast::File& file : set.files)
    for (const ast::Item& item : file.items)
      if (const auto* table = std::get_if<ast::Table>(&item);
          table != nullptr && table->name == name && is_cost_table(*table))
        return table;
  return nullptr;
}

void check_cost_table(const Program& program, const RuleSet& set, const ast::Table& table,
                      Diagnostics& out) {
  for (const ast::Table::Row& row : table.rows) {
    std::set<std::string> known(kNodeSizes.begin(), kNodeSizes.end());
    for (const auto& [name, param] : program.params) known.insert(name);
    if (row.name != kOtherOps) {
      const OpId op = set.context->ops.find(row.name);
      if (!op.valid()) {
        out.push_back(error_at(row.span, "PW0220", "unknown op " + in_ticks(row.name),
                               did_you_mean(row.name, set.context->ops.names(),
                                            "a row names an op, or `other` for all other ops")));
        continue;
      }
      known.merge(names_of(set.context->ops[op]));
    }
    for (const Expr& cell : row.cells)
      visit_scalar(cell, Place::guard, [&](const Occurrence& o) {
        if (o.place == Place::function || known.contains(std::string(o.name))) return;
        const std::vector<std::string> names(known.begin(), known.end());
        out.push_back(
            error_at(o.span, "PW0439",
                     "the cost of " + in_ticks(row.name) + " cannot read " + in_ticks(o.name),
                     did_you_mean(o.name, names,
                                  "it may read params, `bytes`, `read`, `written`, and the names "
                                  "in the op's signature")));
      });
  }
}

}  // namespace pw
