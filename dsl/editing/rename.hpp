// Substitutes expressions for names in statements; used to expand shared patterns and aliases.
#pragma once

#include <map>
#include <string>

#include "dsl/syntax/ast.hpp"

namespace pw {

/// Returns a plain path, as the parser reads `text` in an expression.
Expr path_expr(std::string text, Span span = {});

class Rename {
 public:
  /// Substitutes `with` for `name`; for a binder, a callee or a `*name` only if it is a path. A
  /// type annotation on `with` is added to the first occurrence only, after any that is there.
  void put(const std::string& name, Expr with) { exprs_.insert_or_assign(name, std::move(with)); }
  [[nodiscard]] bool has(const std::string& name) const { return exprs_.contains(name); }

  void apply(Expr& expr);
  void apply(TypeExpr& type);
  void apply(Statement& statement);
  void apply(ast::Body& body);

 private:
  void apply_path(Expr& expr);
  [[nodiscard]] const std::string* new_name(const std::string& name) const;

  std::map<std::string, Expr> exprs_;
};

}  // namespace pw
