// Exports check_supported: an optional node or a shared pattern leaves a choice, and each choice is
// a rule of its own. What is matched many times, or must be absent, cannot be chosen once for all.
#include "dsl/check.hpp"
#include "dsl/suggest.hpp"

namespace pw {
namespace {

class ChoiceCheck {
 public:
  ChoiceCheck(const Program& program, Diagnostics& out) : program_(program), out_(out) {}

  void check(const ast::Body& body) {
    for (const Statement& s : body.statements) statement(s);
    for (const ast::Clause& clause : body.clauses) {
      for (const Statement& s : clause.statements) {
        statement(s);
        if (clause.kind == ast::Clause::Kind::unless) absent(s.value);
      }
    }
  }

 private:
  void statement(const Statement& s) {
    if (s.many)
      members(s.value);
    else
      spreads(s.value);
  }

  void spreads(const Expr& expr) {
    for (const Expr& arg : expr.args) {
      if (is_member_spread(arg))
        members(arg);
      else
        spreads(arg);
    }
  }

  void members(const Expr& expr) {
    for (const Expr& arg : expr.args) members(arg);
    if (expr.kind != Expr::Kind::call) return;
    if (expr.optional)
      refuse(expr, "an optional node", "members of a list");
    else if (program_.patterns.contains(expr.text))
      refuse(expr, "a shared pattern", "members of a list");
  }

  void absent(const Expr& expr) {
    for (const Expr& arg : expr.args) absent(arg);
    if (expr.kind != Expr::Kind::call) return;
    const auto pattern = program_.patterns.find(expr.text);
    const bool several = pattern != program_.patterns.end() &&
                         (pattern->second->alternatives.size() > 1 || pattern->second->recursive);
    if (expr.optional || several)
      refuse(expr, expr.optional ? "an optional node" : "a pattern of several alternatives",
             "`unless`");
  }

  void refuse(const Expr& expr, const std::string& what, const std::string& where) {
    out_.push_back(error_at(expr.span, "PW0296",
                            what + " is a choice, and " + where + " cannot leave one",
                            "write the ops of one choice here; a rule each, or an `unless` each"));
  }

  const Program& program_;
  Diagnostics& out_;
};

}  // namespace

bool check_supported(const Program& program, const ast::Body& body, Diagnostics& out) {
  const std::size_t before = out.size();
  ChoiceCheck(program, out).check(body);
  return out.size() == before;
}

}  // namespace pw
