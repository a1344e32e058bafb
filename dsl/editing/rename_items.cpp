#include "dsl/editing/rename_items.hpp"

#include <utility>
#include <vector>

#include "dsl/cost_tables.hpp"
#include "dsl/editing/rename.hpp"

namespace pw {
namespace {

using Named = std::pair<std::string, Span>;

void put(std::string& name, const NewNames& names) {
  if (const auto found = names.find(name); found != names.end()) name = found->second;
}

/// Renames the part before the dot or bracket: `noop.*`, `noop.slice_full`, `family[row]`.
void put_head(std::string& reference, const NewNames& names) {
  if (names.empty()) return;
  if (const auto whole = names.find(reference); whole != names.end()) {
    reference = whole->second;
    return;
  }
  const std::size_t end = reference.find_first_of(".[");
  const auto found = names.find(std::string_view(reference).substr(0, end));
  if (end != std::string::npos && found != names.end())
    reference = found->second + reference.substr(end);
}

class ItemRenamer {
 public:
  explicit ItemRenamer(const ItemNames& names) : names_(names) {}

  void item(ast::Use&) {}
  void item(ast::Param& p) {
    put(p.name, names_.params);
    if (p.value) scalar(*p.value);
  }
  void item(ast::Extern& e) { put(e.name, names_.externs); }
  void item(ast::OpItem& op) {
    put(op.name, names_.callees);
    for (OperandDecl& operand : op.operands)
      if (operand.type) type(*operand.type);
    for (ResultDecl& result : op.results)
      if (result.type) type(*result.type);
    statements(op.body);
  }
  void item(ast::ForeignItem& f) {
    for (auto& parameter : f.parameters)
      if (parameter.type) type(*parameter.type);
    scalars(f.where);
    statements(f.body);
  }
  void item(ast::Table& t) {
    put(t.name, names_.tables);
    for (ast::Table::Row& row : t.rows) {
      if (is_cost_table(t)) put(row.name, names_.callees);
      for (Expr& cell : row.cells)
        if (cell.kind == Expr::Kind::path) put(cell.text, names_.callees);
    }
    for (auto& [name, span] : t.factors) put(name, names_.tables);
  }
  void item(ast::Pattern& p) {
    put(p.name, names_.callees);
    for (auto* types : {&p.operand_types, &p.result_types})
      for (std::vector<TypeExpr>& list : *types)
        for (TypeExpr& t : list) type(t);
    for (ast::Body& alternative : p.alternatives) body(alternative);
  }
  void item(ast::Rule& r) {
    put(r.name, names_.strategies);
    put(r.table, names_.tables);
    references(r.over);
    body(r.body);
    with_variables(r.body, [&] { statements(r.replacement); });
  }
  void item(ast::Group& g) {
    put(g.name, names_.strategies);
    NewNames strategies = names_.strategies;
    for (const ast::Rule& r : g.rules) names_.strategies.erase(r.name);  // they are the group's
    for (ast::Rule& r : g.rules) item(r);
    std::swap(strategies, names_.strategies);
  }
  void item(ast::Pass& p) {
    put(p.name, names_.strategies);
    strategy(p.strategy);
  }
  void item(ast::Pipeline& p) {
    put(p.name, names_.strategies);
    strategy(p.strategy);
  }
  void item(ast::Split& s) {
    put(s.name, names_.splits);
    for (ast::Split::At& at : s.at) {
      for (auto& [name, span] : at.ops) put(name, names_.callees);
      scalars(at.when);
    }
  }
  void item(ast::Capture&) {}
  void item(ast::Explore& e) {
    put(e.name, names_.explores);
    for (ast::Explore::Clause& clause : e.clauses) {
      using ClauseKind = ast::Explore::Clause::Kind;
      for (auto& [name, span] : clause.names) {
        if (clause.kind == ClauseKind::with)
          put(name, names_.params);
        else if (clause.kind == ClauseKind::by)
          put(name, names_.tables);
        else
          put_head(name, names_.strategies);
      }
      scalars(clause.values);
    }
  }
  void item(ast::Test& t) {
    put(t.name, names_.tests);
    for (ast::GraphItem& g : t.graph) item(g);
    references(t.apply);
    for (auto& [name, value] : t.with) {
      put(name, names_.params);
      scalar(value);
    }
    for (ast::Expectation& expectation : t.expectations) {
      for (Expr& guard : expectation.guard) count(guard);
      for (ast::GraphItem& g : expectation.graph) item(g);
    }
  }
  void item(ast::GraphItem& g) {
    NewNames callees = names_.callees;
    for (const ast::OpItem& op : g.ops) callees.erase(op.name);  // its own
    std::swap(callees, names_.callees);
    for (ast::GraphItem::Node& node : g.nodes) operand(node.statement.value);
    for (ast::OpItem& op : g.ops) statements(op.body);
    std::swap(callees, names_.callees);
  }

 private:
  void references(std::vector<Named>& list) {
    for (auto& [name, span] : list) put_head(name, names_.strategies);
  }
  void scalars(std::vector<Expr>& list) {
    for (Expr& e : list) scalar(e);
  }
  void statements(std::vector<Statement>& list) {
    for (Statement& s : list) {
      for (Binder& binder : s.binders)
        for (TypeExpr& t : binder.type) type(t);
      operand(s.value);
    }
  }

  /// Runs `act` with the variables of the body excluded from the names of ops.
  template <class Act>
  void with_variables(const ast::Body& of, Act act) {
    NewNames callees = names_.callees;
    for (const ast::OpVariable& variable : of.ops) names_.callees.erase(variable.name);
    act();
    std::swap(callees, names_.callees);
  }
  void body(ast::Body& b) {
    with_variables(b, [&] {
      statements(b.statements);
      for (ast::Clause& clause : b.clauses) {
        scalars(clause.guards);
        statements(clause.statements);
      }
    });
  }

  /// Renames in operand position: calls are of ops.
  void operand(Expr& e) {
    if (e.kind == Expr::Kind::call) put(e.text, names_.callees);
    if (e.kind == Expr::Kind::path) put(e.text, names_.params);
    for (Expr& arg : e.args) operand(arg);
    for (AttributeArg& argument : e.attributes) {
      if (argument.value.empty() && names_.params.contains(argument.name)) {
        // `{tp}`: the attribute keeps its name
        argument.value.push_back(path_expr(argument.name, argument.span));
      }
      scalars(argument.value);
    }
    for (TypeExpr& t : e.type) type(t);
  }
  /// Renames in scalar position: calls are of functions.
  void scalar(Expr& e) {
    if (e.kind == Expr::Kind::call) put(e.text, names_.externs);
    if (e.kind == Expr::Kind::path) put(e.text, names_.params);
    scalars(e.args);
  }
  void type(TypeExpr& t) {
    scalars(t.dtype);
    scalars(t.dims);
  }

  void strategy(ast::Strategy& s) {
    references(s.references);
    for (ast::Strategy& part : s.parts) strategy(part);
    for (Expr& guard : s.when) count(guard);
    for (Expr& guard : s.ensures) count(guard);
    put(s.by, names_.tables);
    put(s.cost, names_.tables);
  }
  /// Renames in a count of a test or a strategy: ops in `count(…)`, rules elsewhere, and params.
  void count(Expr& e) {
    if (e.kind == Expr::Kind::call && e.text == "count") {
      for (Expr& arg : e.args)
        if (arg.kind == Expr::Kind::path) put(arg.text, names_.callees);
      return;
    }
    if (e.kind == Expr::Kind::call) put(e.text, names_.externs);
    if (e.kind == Expr::Kind::path) {
      put(e.text, names_.params);
      put_head(e.text, names_.strategies);
    }
    for (Expr& arg : e.args) count(arg);
  }

  ItemNames names_;
};

}  // namespace

bool ItemNames::empty() const {
  return callees.empty() && strategies.empty() && params.empty() && tables.empty() &&
         externs.empty() && splits.empty() && tests.empty() && explores.empty();
}

void rename_items(ast::File& file, const ItemNames& names) {
  if (names.empty()) return;
  ItemRenamer renamer(names);
  for (ast::Item& item : file.items) std::visit([&](auto& i) { renamer.item(i); }, item);
}

void rename_callees(ast::OpItem& op, const NewNames& callees) {
  ItemNames names;
  names.callees = callees;
  ItemRenamer(names).item(op);
}

}  // namespace pw
