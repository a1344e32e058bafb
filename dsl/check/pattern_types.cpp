#include <set>

#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

/// Returns the names that occur alone somewhere in the pattern, and so are bound without solving.
std::set<std::string_view> bare_names(const ast::Rule& rule) {
  std::set<std::string_view> names;
  for (const PatternStatement& p : pattern_statements(rule.body)) {
    visit_statement(*p.statement, [&](const Occurrence& o) {
      if (o.bare) names.insert(o.name);
    });
  }
  return names;
}

class TypeCheck {
 public:
  TypeCheck(const CheckedRule& checked, Diagnostics& out)
      : checked_(checked), out_(out), bare_(bare_names(checked.ast)) {}

  void run() {
    for (const PatternStatement& p : pattern_statements(checked_.ast.body)) {
      statement(*p.statement, p.statement->many);
    }
    for (const ast::Clause& clause : checked_.ast.body.clauses) {
      if (clause.kind != ast::Clause::Kind::unless) continue;
      for (const Statement& s : clause.statements) statement(s, true);
    }
  }

 private:
  /// Checks a statement. `whole`: a shape can be read in one way here, since there are many
  /// members, or none.
  void statement(const Statement& s, bool whole) {
    for (const Binder& binder : s.binders) {
      for (const TypeExpr& type : binder.type) check(type, whole || binder.spread);
    }
    operand(s.value, whole);
  }

  void operand(const Expr& expr, bool whole) {
    for (const TypeExpr& type : expr.type) check(type, whole);
    for (const Expr& arg : expr.args) operand(arg, whole || arg.kind == Expr::Kind::spread);
  }

  void check(const TypeExpr& type, bool whole) {
    for (const Expr& dtype : type.dtype) {
      if (dtype.kind != Expr::Kind::path)
        out_.push_back(error_at(dtype.span, "PW0256",
                                "a dtype in a pattern must be a dtype or a variable",
                                "state the condition in `where`"));
    }
    int unbound_sequences = 0;
    for (const Expr& dim : type.dims) {
      if (dim.kind == Expr::Kind::star && ++unbound_sequences == 2 && whole)
        out_.push_back(error_at(dim.span, "PW0257",
                                "a shape in `many` or `unless` has at most one sequence, because "
                                "its split would be ambiguous otherwise",
                                "write the dims of all but one of them"));
      if (dim.kind != Expr::Kind::star && dim.kind != Expr::Kind::path) check_dim(dim);
    }
  }

  void check_dim(const Expr& dim) {
    std::set<std::string_view> open;
    visit_scalar(dim, Place::dim, [&](const Occurrence& o) {
      if (o.place == Place::dim && !bare_.contains(o.name) &&
          !checked_.outer.params.contains(o.name))
        open.insert(o.name);
    });
    if (open.size() < 2) return;
    out_.push_back(error_at(
        dim.span, "PW0258",
        "a dim can be solved for one variable, and this has " + std::to_string(open.size()),
        "bind all but one of them elsewhere in the pattern"));
  }

  const CheckedRule& checked_;
  Diagnostics& out_;
  std::set<std::string_view> bare_;
};

}  // namespace

void check_pattern_types(const CheckedRule& checked, Diagnostics& out) {
  TypeCheck(checked, out).run();
}

}  // namespace pw
