// Exports check_supported, is_supported: constructs of the language that this version parses and
// does not run yet.
#include "dsl/check.hpp"
#include "dsl/suggest.hpp"

namespace pw {
namespace {

Diagnostic refuse(Span span, std::string_view code, std::string_view what, std::string_view help) {
  return error_at(span, code, std::string(what) + " is parsed, but this version cannot run it yet",
                  std::string(help));
}

void refuse_in_operand(const Expr& expr, Diagnostics& out) {
  if (expr.kind == Expr::Kind::spread)
    out.push_back(refuse(expr.span, "PW0352", "a spread, `xs...`, in a rule",
                         "write the operands one by one"));
  for (const Expr& arg : expr.args) refuse_in_operand(arg, out);
}

void refuse_in_statement(const Statement& s, Diagnostics& out) {
  if (s.many)
    out.push_back(refuse(s.span, "PW0354", "`many`",
                         "write a rule for two siblings: its repetition merges more"));
  for (const Binder& binder : s.binders) {
    if (binder.spread)
      out.push_back(refuse(binder.span, "PW0352", "a spread, `" + binder.name + "...`, in a rule",
                           "write the results one by one"));
  }
  refuse_in_operand(s.value, out);
}

void refuse_in_clause(const ast::Clause& clause, Diagnostics& out) {
  if (clause.kind == ast::Clause::Kind::unless)
    out.push_back(refuse(clause.span, "PW0356", "`unless`",
                         "let a rule that matches the larger pattern stand `over` this one"));
  if (clause.kind != ast::Clause::Kind::given) return;
  for (const Statement& s : clause.statements) refuse_in_statement(s, out);
}

void refuse_in_rule(const ast::Rule& rule, Diagnostics& out) {
  for (const ast::Clause& clause : rule.body.clauses) refuse_in_clause(clause, out);
  for (const Statement& s : rule.body.statements) refuse_in_statement(s, out);
  for (const Statement& s : rule.replacement) refuse_in_statement(s, out);
}

void refuse_in_pattern(const ast::Body& body, Diagnostics& out) {
  for (const ast::Clause& clause : body.clauses) refuse_in_clause(clause, out);
  for (const Statement& s : body.statements) refuse_in_statement(s, out);
}

}  // namespace

bool is_supported(const ast::Rule& rule) {
  Diagnostics found;
  refuse_in_rule(rule, found);
  return found.empty();
}

void check_supported(const Program& program, Diagnostics& out) {
  for (const RuleDecl& r : program.rules) refuse_in_rule(*r.rule, out);
  for (const auto& [name, item] : program.patterns) {
    for (const ast::Body& body : item->alternatives) refuse_in_pattern(body, out);
  }
}

}  // namespace pw
