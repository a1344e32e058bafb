#include "dsl/actions/statements.hpp"

namespace pw {

void StatementActions::push_binder() {
  Binder b;
  b.name = cursor_.word();
  b.span = cursor_.span();
  stacks_.binders.push_back(std::move(b));
}
void StatementActions::spread_binder() {
  stacks_.binders.back().spread = true;
  stacks_.binders.back().span.end = cursor_.last().end();
}
void StatementActions::type_binder() {
  stacks_.binders.back().type.push_back(stacks_.pop_type());
  stacks_.binders.back().span.end = cursor_.last().end();
}
void StatementActions::set_many() { stacks_.mark().many = true; }
void StatementActions::end() {
  const ValueStacks::Mark m = stacks_.close();
  Statement s;
  s.span = stacks_.since(m);
  s.many = m.many;
  s.binders = take(stacks_.binders, m.binders);
  s.value = stacks_.pop_expression();
  const bool word_alone =
      s.value.kind == Expr::Kind::path && !s.value.optional && s.value.text == "fuse";
  if (word_alone && !s.binders.empty()) s.value.kind = Expr::Kind::fuse;
  stacks_.statements.push_back(std::move(s));
}

void ClauseActions::end_guards() {
  const ValueStacks::Mark m = stacks_.close();
  ast::Clause c;
  c.kind = m.begin->kind == Tok::where ? ast::Clause::Kind::where : ast::Clause::Kind::assume;
  c.span = stacks_.since(m);
  c.guards = take(stacks_.expressions, m.expressions);
  stacks_.clauses.push_back(std::move(c));
}
void ClauseActions::end_block() {
  const ValueStacks::Mark m = stacks_.close();
  ast::Clause c;
  c.kind = m.begin->kind == Tok::given ? ast::Clause::Kind::given : ast::Clause::Kind::unless;
  c.span = stacks_.since(m);
  c.statements = take(stacks_.statements, m.statements);
  stacks_.clauses.push_back(std::move(c));
}
void ClauseActions::op_variable() {
  ast::OpVariable variable;
  variable.name = cursor_.word();
  variable.name_span = cursor_.span();
  stacks_.op_variables.push_back(std::move(variable));
}
void ClauseActions::end_op_variable() {
  ast::OpVariable& variable = stacks_.op_variables.back();
  variable.trait = cursor_.word();
  variable.trait_span = cursor_.span();
  variable.span = stacks_.since(stacks_.close());
}

}  // namespace pw
