#include "dsl/editing/rename.hpp"

#include <utility>

namespace pw {

Expr path_expr(std::string text, Span span) {
  Expr expr;
  expr.kind = Expr::Kind::path;
  expr.text = std::move(text);
  expr.span = span;
  return expr;
}

const std::string* Rename::new_name(const std::string& name) const {
  const auto it = exprs_.find(name);
  return it != exprs_.end() && it->second.kind == Expr::Kind::path ? &it->second.text : nullptr;
}

void Rename::apply_path(Expr& expr) {
  const std::size_t dot = expr.text.find('.');
  if (dot != std::string::npos) {
    if (const std::string* name = new_name(expr.text.substr(0, dot)))
      expr.text = *name + expr.text.substr(dot);
    return;
  }
  const auto it = exprs_.find(expr.text);
  if (it == exprs_.end()) return;
  std::vector<TypeExpr> type = std::move(expr.type);
  for (TypeExpr& t : it->second.type) type.push_back(std::move(t));
  it->second.type.clear();
  const bool optional = expr.optional;
  expr = it->second;
  expr.type = std::move(type);
  expr.optional = expr.optional || optional;
}

void Rename::apply(Expr& expr) {
  for (Expr& arg : expr.args) apply(arg);
  for (TypeExpr& type : expr.type) apply(type);
  for (AttributeArg& argument : expr.attributes) {
    if (argument.value.empty() && exprs_.contains(argument.name)) {
      argument.value.push_back(exprs_.at(argument.name));
      argument.value.back().type.clear();
    } else {
      for (Expr& value : argument.value) apply(value);
    }
  }
  if (expr.kind == Expr::Kind::path) return apply_path(expr);
  if (expr.kind != Expr::Kind::call && expr.kind != Expr::Kind::star) return;
  if (const std::string* name = new_name(expr.text)) expr.text = *name;
}

void Rename::apply(TypeExpr& type) {
  for (Expr& dtype : type.dtype) apply(dtype);
  for (Expr& dim : type.dims) apply(dim);
}

void Rename::apply(Statement& statement) {
  for (Binder& binder : statement.binders) {
    if (const std::string* name = new_name(binder.name)) binder.name = *name;
    for (TypeExpr& type : binder.type) apply(type);
  }
  apply(statement.value);
}

void Rename::apply(ast::Body& body) {
  for (Statement& s : body.statements) apply(s);
  for (ast::Clause& clause : body.clauses) {
    for (Expr& guard : clause.guards) apply(guard);
    for (Statement& s : clause.statements) apply(s);
  }
}

}  // namespace pw
