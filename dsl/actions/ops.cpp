#include "dsl/actions/ops.hpp"

namespace pw {
namespace {

bool binds(const std::vector<Statement>& body, const std::string& name) {
  for (const Statement& s : body)
    for (const Binder& b : s.binders)
      if (b.name == name) return true;
  return false;
}

}  // namespace

void OpActions::name() {
  op_ = {};
  ValueStacks::Named n = stacks_.pop_path();
  op_.name = std::move(n.text);
  op_.name_span = n.span;
}
void OpActions::imported() { op_.imported = true; }
void OpActions::operand() {
  OperandDecl o;
  o.name = cursor_.word();
  o.span = cursor_.span();
  op_.operands.push_back(std::move(o));
}
void OpActions::operand_mut() {
  operand();
  op_.operands.back().mut = true;
}
void OpActions::operand_out() {
  operand();
  op_.operands.back().out = true;
}
void OpActions::operand_spread() { op_.operands.back().variadic = true; }
void OpActions::operand_optional() { op_.operands.back().optional = true; }
void OpActions::operand_type() {
  op_.operands.back().type = stacks_.pop_type();
  op_.operands.back().span.end = cursor_.last().end();
}

void OpActions::attribute_name() {
  ast::AttributeDecl a;
  a.name = cursor_.word();
  a.span = cursor_.span();
  op_.attributes.push_back(std::move(a));
}
void OpActions::attribute_kind() { op_.attributes.back().kind = cursor_.word(); }
void OpActions::attribute_nullable() { op_.attributes.back().nullable = true; }
void OpActions::attribute_default() {
  op_.attributes.back().value = stacks_.pop_expression();
  op_.attributes.back().span.end = cursor_.last().end();
}

void OpActions::result_word() {
  ResultDecl r;
  r.name = cursor_.word();
  r.span = cursor_.span();
  op_.results.push_back(std::move(r));
  op_.result_from.emplace_back();
}
void OpActions::result_spread() { op_.results.back().variadic = true; }
void OpActions::result_type() {
  op_.results.back().type = stacks_.pop_type();
  op_.results.back().span.end = cursor_.last().end();
}
/// Decides `-> y`: a name if the body binds y (see end), else a type.
void OpActions::result_word_or_type() {
  ResultDecl r;
  r.type = stacks_.pop_type();
  r.span = r.type->span;
  op_.results.push_back(std::move(r));
  op_.result_from.emplace_back();
}
void OpActions::result_from() { op_.result_from.back() = cursor_.word(); }
void OpActions::trait() { op_.traits.emplace_back(cursor_.word(), cursor_.span()); }
void OpActions::end() {
  const ValueStacks::Mark m = stacks_.close();
  op_.span = stacks_.since(m);
  op_.body = take(stacks_.statements, m.statements);
  for (ResultDecl& r : op_.results) {
    const bool bare =
        r.name.empty() && r.type && r.type->any_shape && r.type->dtype[0].kind == Expr::Kind::path;
    if (!bare || !binds(op_.body, r.type->dtype[0].text)) continue;
    r.name = r.type->dtype[0].text;
    r.type.reset();
  }
  stacks_.items.emplace_back(std::move(op_));
}

// ---- foreign ops

void ForeignActions::path() {
  foreign_ = {};
  ValueStacks::Named n = stacks_.pop_path();
  foreign_.target = std::move(n.text);
  foreign_.name_span = n.span;
}
void ForeignActions::string() {
  foreign_ = {};
  foreign_.target = cursor_.string();
  foreign_.name_span = cursor_.span();
}
void ForeignActions::parameter() {
  ast::ForeignItem::Parameter p;
  p.names.emplace_back(cursor_.word(), cursor_.span());
  p.span = cursor_.span();
  foreign_.parameters.push_back(std::move(p));
}
void ForeignActions::parameter_mut() {
  parameter();
  foreign_.parameters.back().mut = true;
}
void ForeignActions::parameter_out() {
  parameter();
  foreign_.parameters.back().out = true;
}
void ForeignActions::alias() {
  foreign_.parameters.back().names.emplace_back(cursor_.word(), cursor_.span());
}
void ForeignActions::type() {
  foreign_.parameters.back().type = stacks_.pop_type();
  foreign_.parameters.back().span.end = cursor_.last().end();
}
void ForeignActions::default_value() {
  foreign_.parameters.back().value = stacks_.pop_expression();
  foreign_.parameters.back().span.end = cursor_.last().end();
}
void ForeignActions::expression() {
  Statement s;
  s.value = stacks_.pop_expression();
  s.span = s.value.span;
  Binder all;
  all.name = "=";
  all.span = s.span;
  all.spread = true;
  s.binders.push_back(std::move(all));
  foreign_.body.push_back(std::move(s));
}
void ForeignActions::return_name() {
  foreign_.returns.emplace_back(cursor_.word(), cursor_.span());
}
void ForeignActions::where() {
  foreign_.where = take(stacks_.expressions, stacks_.mark().expressions);
}
void ForeignActions::block() {
  foreign_.block = true;
  foreign_.body = take(stacks_.statements, stacks_.mark().statements);
}
void ForeignActions::end() {
  foreign_.span = stacks_.since(stacks_.close());
  stacks_.items.emplace_back(std::move(foreign_));
}

}  // namespace pw
