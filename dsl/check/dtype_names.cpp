#include "graph/dtype_names.hpp"

#include <set>

#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

class DTypeNames {
 public:
  DTypeNames(const Program& program, Diagnostics& out) : program_(program), out_(out) {}

  void op(const ast::OpItem& item) {
    known_.clear();
    for (const ast::AttributeDecl& attribute : item.attributes) known_.insert(attribute.name);
    for (const OperandDecl& operand : item.operands)
      if (operand.type) type(*operand.type);
    for (const ResultDecl& result : item.results)
      if (result.type) type(*result.type);
    statements(item.body);
  }

  void rule(const ast::Rule& item) {
    known_ = {item.variant};
    body(item.body);
    statements(item.replacement);
  }

  void pattern(const ast::Pattern& item) {
    known_.clear();
    for (const ast::Body& alternative : item.alternatives) body(alternative);
  }

 private:
  void body(const ast::Body& body) {
    statements(body.statements);
    for (const ast::Clause& clause : body.clauses) statements(clause.statements);
  }

  void statements(const std::vector<Statement>& statements) {
    for (const Statement& s : statements) visit_statement(s, [&](const Occurrence& o) { see(o); });
  }

  void type(const TypeExpr& type) {
    visit_type(type, [&](const Occurrence& o) { see(o); });
  }

  /// Checks a name in the place of a dtype: it is a variable that matches all dtypes.
  void see(const Occurrence& o) {
    if (o.place != Place::dtype || !looks_like_dtype(o.name) || program_.params.contains(o.name))
      return;
    if (!known_.emplace(o.name).second) return;  // an attribute, or reported before
    out_.push_back(error_at(
        o.span, "PW0219",
        "no dtype is called " + in_ticks(o.name) + ", and as a variable it would match any dtype",
        dtype_hint(o.name)));
  }

  const Program& program_;
  Diagnostics& out_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace

void check_dtype_names(const Program& program, Diagnostics& out) {
  DTypeNames check(program, out);
  for (const ast::OpItem* item : program.ops) check.op(*item);
  for (const RuleDecl& decl : program.rules) check.rule(*decl.rule);
  for (const auto& [name, pattern] : program.patterns) check.pattern(*pattern);
}

}  // namespace pw
