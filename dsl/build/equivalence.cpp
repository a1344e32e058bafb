#include "dsl/build/equivalence.hpp"

#include "dsl/syntax/names.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

/// Moves the types that one side states to the first occurrence of the same name on the other side.
class TypeMove {
 public:
  void take(std::vector<Statement>& statements) {
    for (Statement& s : statements) {
      for (Binder& binder : s.binders) keep(binder.name, binder.type);
      take(s.value);
    }
  }

  void give(std::vector<Statement>& statements) {
    for (Statement& s : statements) {
      give(s.value);
      for (Binder& binder : s.binders) put(binder.name, binder.type);
    }
  }

 private:
  void keep(const std::string& name, std::vector<TypeExpr>& types) {
    std::vector<TypeExpr>& kept = types_[name];
    std::move(types.begin(), types.end(), std::back_inserter(kept));
    types.clear();
  }
  void put(const std::string& name, std::vector<TypeExpr>& types) {
    const auto it = types_.find(name);
    if (it == types_.end()) return;
    std::move(it->second.begin(), it->second.end(), std::back_inserter(types));
    types_.erase(it);
  }
  void take(Expr& e) {
    if (e.kind == Expr::Kind::path) keep(e.text, e.type);
    e.type.clear();
    for (Expr& arg : e.args) take(arg);
  }
  void give(Expr& e) {
    if (e.kind == Expr::Kind::path) put(e.text, e.type);
    for (Expr& arg : e.args) give(arg);
  }

  std::map<std::string, std::vector<TypeExpr>> types_;
};

ast::Rule half(const ast::Rule& rule, const std::string& direction) {
  ast::Rule out = rule;
  out.name += "[" + direction + "]";
  out.direction = direction;
  out.equivalence = false;
  return out;
}

ast::Rule backward(const ast::Rule& rule) {
  ast::Rule out = half(rule, "backward");
  std::swap(out.body.statements, out.replacement);
  std::erase_if(out.replacement, is_drop);
  TypeMove types;
  types.take(out.replacement);
  types.give(out.body.statements);
  return out;
}

}  // namespace

std::vector<ast::Rule> directions_of(const ast::Rule& rule, Diagnostics& out) {
  if (rule.table.empty()) return {half(rule, "forward"), backward(rule)};
  out.push_back(error_at(rule.name_span, "PW0396",
                         "equivalence " + in_ticks(rule.name) + " cannot be a family",
                         "write an equivalence for each row, or a rule with `=>`"));
  return {};
}

}  // namespace pw
