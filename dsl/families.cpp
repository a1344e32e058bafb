#include "dsl/families.hpp"

#include <algorithm>
#include <set>

#include "dsl/build/row_lists.hpp"
#include "dsl/cost_tables.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

/// Substitution of a row's cells for `k.column` everywhere in a rule.
class Substitution {
 public:
  Substitution(const Context& context, const std::string& variable, const ast::Table& table,
               const ast::Table::Row& row, Diagnostics& out)
      : context_(context), prefix_(variable + "."), table_(table), row_(row), out_(out) {}

  void apply(ast::Body& body) {
    for (Statement& s : body.statements) apply(s);
    for (ast::Clause& clause : body.clauses) {
      for (Expr& guard : clause.guards) apply(guard);
      for (Statement& s : clause.statements) apply(s);
    }
  }

  void apply(Statement& s) {
    for (Binder& binder : s.binders) {
      for (TypeExpr& type : binder.type) apply(type);
    }
    apply(s.value);
  }

 private:
  void apply(TypeExpr& type) {
    for (Expr& dtype : type.dtype) apply(dtype);
    for (Expr& dim : type.dims) apply(dim);
  }

  void apply(Expr& expr) {
    for (Expr& arg : expr.args) apply(arg);
    for (AttributeArg& argument : expr.attributes) {
      for (Expr& value : argument.value) apply(value);
    }
    for (TypeExpr& type : expr.type) apply(type);
    if (expr.kind == Expr::Kind::call) callee(expr);
    if (expr.kind == Expr::Kind::path) path(expr);
  }

  const Expr* cell(const Expr& use) {
    if (!use.text.starts_with(prefix_)) return nullptr;
    const std::string column = use.text.substr(prefix_.size());
    const auto it = std::find(table_.columns.begin(), table_.columns.end(), column);
    const auto index = static_cast<std::size_t>(it - table_.columns.begin());
    if (it != table_.columns.end() && index < row_.cells.size()) return &row_.cells[index];
    Diagnostic d = error_at(use.span, "PW0370",
                            "table " + in_ticks(table_.name) + " has no column " + in_ticks(column),
                            did_you_mean(column, table_.columns));
    d.secondary.push_back({table_.name_span, "declared here"});
    out_.push_back(std::move(d));
    return nullptr;
  }

  void path(Expr& expr) {
    const Expr* value = cell(expr);
    if (value == nullptr) return;
    const Span span = expr.span;
    std::vector<TypeExpr> type = std::move(expr.type);
    expr = *value;
    expr.span = span;
    expr.type = std::move(type);
  }

  void callee(Expr& call) {
    const bool column = call.text.starts_with(prefix_);
    if (const Expr* value = cell(call)) {
      if (value->kind != Expr::Kind::path) {
        Diagnostic d = error_at(value->span, "PW0371",
                                "this cell is called as an op, but does not contain one",
                                "write the name of an op");
        d.secondary.push_back({call.span, "called here"});
        out_.push_back(std::move(d));
        return;
      }
      call.text = value->text;
    }
    if (column) leave_out_none(call);
  }

  void leave_out_none(Expr& call) {
    const OpId op = context_.ops.find(call.text);
    if (!op.valid()) return;
    std::erase_if(call.attributes, [&](const AttributeArg& argument) {
      return !argument.value.empty() && argument.value.front().kind == Expr::Kind::none &&
             context_.ops[op].attribute(argument.name) == nullptr;
    });
  }

  const Context& context_;
  std::string prefix_;
  const ast::Table& table_;
  const ast::Table::Row& row_;
  Diagnostics& out_;
};

std::optional<Attribute> cell_value(const Expr& cell) {
  switch (cell.kind) {
    case Expr::Kind::integer: return Attribute(cell.integer);
    case Expr::Kind::real: return Attribute(cell.real);
    case Expr::Kind::string: return Attribute(cell.text);
    case Expr::Kind::boolean: return Attribute(cell.integer != 0);
    case Expr::Kind::none: return Attribute(None{});
    case Expr::Kind::path:
      if (auto dtype = dtype_named(cell.text)) return Attribute(*dtype);
      return {};
    case Expr::Kind::negate:
      if (cell.args.front().kind == Expr::Kind::integer)
        return Attribute(-cell.args.front().integer);
      if (cell.args.front().kind == Expr::Kind::real) return Attribute(-cell.args.front().real);
      return {};
    case Expr::Kind::list:
    case Expr::Kind::call:
    case Expr::Kind::not_:
    case Expr::Kind::binary:
    case Expr::Kind::in_set:
    case Expr::Kind::in_range:
    case Expr::Kind::index:
    case Expr::Kind::spread:
    case Expr::Kind::star:
    case Expr::Kind::fuse: return {};
  }
  return {};
}

bool names_op(const Expr& cell) { return cell.kind == Expr::Kind::path && !dtype_named(cell.text); }

}  // namespace

std::vector<Variant> expand_family(const Context& context, const ast::Rule& rule,
                                   const ast::Table* table, Diagnostics& out) {
  std::vector<Variant> variants;
  if (table == nullptr) {
    variants.push_back({"", rule, {}});
    forward_attributes(context, variants.back().rule, out);
    return variants;
  }
  for (const ast::Table::Row& row : table->rows) {
    Variant variant{row.name, rule, {}};
    variant.rule.name += "[" + row.name + "]";
    Substitution substitution(context, rule.variant, *table, row, out);
    substitution.apply(variant.rule.body);
    for (Statement& s : variant.rule.replacement) substitution.apply(s);
    name_list_elements(context, variant.rule, out);
    forward_attributes(context, variant.rule, out);
    for (std::size_t i = 0; i < table->columns.size() && i < row.cells.size(); ++i) {
      if (auto value = cell_value(row.cells[i]))
        variant.constants.emplace(rule.variant + "." + table->columns[i], *value);
    }
    variants.push_back(std::move(variant));
  }
  return variants;
}

void check_table(Context& context, const ast::Table& table, Diagnostics& out) {
  std::set<std::string> columns, rows;
  for (const std::string& column : table.columns) {
    if (!columns.insert(column).second)
      out.push_back(
          error_at(table.name_span, "PW0372", "column " + in_ticks(column) + " is declared twice"));
  }
  if (table.rows.empty())
    out.push_back(warning_at(
        table.name_span, "PW0373",
        "table " + in_ticks(table.name) + " has no rows, so its families have no rules"));
  for (const ast::Table::Row& row : table.rows) {
    if (!rows.insert(row.name).second)
      out.push_back(
          error_at(row.span, "PW0372", "row " + in_ticks(row.name) + " is declared twice"));
    if (row.cells.size() != table.columns.size())
      out.push_back(error_at(row.span, "PW0374",
                             "row " + in_ticks(row.name) + " has " +
                                 std::to_string(row.cells.size()) + " cells for " +
                                 std::to_string(table.columns.size()) + " columns"));
    for (std::size_t i = 0; i < row.cells.size() && i < table.columns.size(); ++i) {
      const Expr& cell = row.cells[i];
      const bool op = names_op(cell);
      if (op && !context.ops.find(cell.text).valid() && !is_cost_table(table))
        out.push_back(error_at(cell.span, "PW0220", "unknown op " + in_ticks(cell.text),
                               did_you_mean(cell.text, context.ops.names())));
      const Expr& first = i < table.rows.front().cells.size() ? table.rows.front().cells[i] : cell;
      const bool comparable = cell.kind != Expr::Kind::none && first.kind != Expr::Kind::none;
      if (comparable && op != names_op(first) && !is_cost_table(table))
        out.push_back(error_at(cell.span, "PW0375",
                               "column " + in_ticks(table.columns[i]) + " mixes ops and values"));
      if (!op && !cell_value(cell) && !is_cost_table(table))
        out.push_back(error_at(cell.span, "PW0375",
                               "a cell must be a literal, or the name of an op or a dtype"));
    }
  }
}

}  // namespace pw
