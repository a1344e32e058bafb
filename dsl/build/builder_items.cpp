#include "dsl/build/builder.hpp"
#include "dsl/build/builder_take.hpp"

namespace pw {
// ---- use, param, extern

void Builder::end_use() { items.emplace_back(ast::Use{since(close()), unescape(text(last()))}); }

void Builder::param_kind() {
  param_ = {};
  param_.kind = word(last());
}
void Builder::param_value() { param_.value = pop_expression(); }
void Builder::end_param() {
  param_.span = since(close());
  param_.name = pop_name().text;
  items.emplace_back(std::move(param_));
}

void Builder::extern_predicate() { extern_.predicate = true; }
void Builder::extern_parameter_name() { extern_.parameters.emplace_back(word(last()), ""); }
void Builder::extern_parameter() {
  if (at_[-2].kind == Tok::colon)
    extern_.parameters.back().second = word(last());
  else
    extern_.parameters.emplace_back("", word(last()));
}
void Builder::extern_result() { extern_.result = word(last()); }
void Builder::end_extern() {
  extern_.span = since(close());
  extern_.name = pop_name().text;
  items.emplace_back(std::move(extern_));
}

// ---- ops

void Builder::op_name() {
  op_ = {};
  Named n = pop_path();
  op_.name = std::move(n.text);
  op_.name_span = n.span;
}
void Builder::op_imported() { op_.imported = true; }
void Builder::operand() {
  OperandDecl o;
  o.name = word(last());
  o.span = span(last());
  op_.operands.push_back(std::move(o));
}
void Builder::operand_mut() {
  operand();
  op_.operands.back().mut = true;
}
void Builder::operand_out() {
  operand();
  op_.operands.back().out = true;
}
void Builder::operand_spread() { op_.operands.back().variadic = true; }
void Builder::operand_optional() { op_.operands.back().optional = true; }
void Builder::operand_type() {
  op_.operands.back().type = pop_type();
  op_.operands.back().span.end = last().end();
}

void Builder::attribute_name() {
  ast::AttributeDecl a;
  a.name = word(last());
  a.span = span(last());
  op_.attributes.push_back(std::move(a));
}
void Builder::attribute_kind() { op_.attributes.back().kind = word(last()); }
void Builder::attribute_nullable() { op_.attributes.back().nullable = true; }
void Builder::attribute_default() {
  op_.attributes.back().value = pop_expression();
  op_.attributes.back().span.end = last().end();
}

void Builder::result_word() {
  ResultDecl r;
  r.name = word(last());
  r.span = span(last());
  op_.results.push_back(std::move(r));
  op_.result_from.emplace_back();
}
void Builder::result_spread() { op_.results.back().variadic = true; }
void Builder::result_colon() {}
void Builder::result_type() {
  op_.results.back().type = pop_type();
  op_.results.back().span.end = last().end();
}
/// Decides `-> y`: a name if the body binds y (see end_op), else a type.
void Builder::result_word_or_type() {
  ResultDecl r;
  r.type = pop_type();
  r.span = r.type->span;
  op_.results.push_back(std::move(r));
  op_.result_from.emplace_back();
}
void Builder::result_from() { op_.result_from.back() = word(last()); }
void Builder::trait() { op_.traits.emplace_back(word(last()), span(last())); }

namespace {

bool binds(const std::vector<Statement>& body, const std::string& name) {
  for (const Statement& s : body)
    for (const Binder& b : s.binders)
      if (b.name == name) return true;
  return false;
}

}  // namespace

void Builder::end_op() {
  const Mark m = close();
  op_.span = since(m);
  op_.body = take(statements_, m.statements);
  for (ResultDecl& r : op_.results) {
    const bool bare =
        r.name.empty() && r.type && r.type->any_shape && r.type->dtype[0].kind == Expr::Kind::path;
    if (!bare || !binds(op_.body, r.type->dtype[0].text)) continue;
    r.name = r.type->dtype[0].text;
    r.type.reset();
  }
}
void Builder::item_op() { items.emplace_back(std::move(op_)); }

// ---- foreign ops

void Builder::foreign_path() {
  foreign_ = {};
  Named n = pop_path();
  foreign_.target = std::move(n.text);
  foreign_.name_span = n.span;
}
void Builder::foreign_string() {
  foreign_ = {};
  foreign_.target = unescape(text(last()));
  foreign_.name_span = span(last());
}
void Builder::foreign_parameter() {
  ast::ForeignItem::Parameter p;
  p.names.emplace_back(word(last()), span(last()));
  p.span = span(last());
  foreign_.parameters.push_back(std::move(p));
}
void Builder::foreign_mut() {
  foreign_parameter();
  foreign_.parameters.back().mut = true;
}
void Builder::foreign_out() {
  foreign_parameter();
  foreign_.parameters.back().out = true;
}
void Builder::foreign_alias() {
  foreign_.parameters.back().names.emplace_back(word(last()), span(last()));
}
void Builder::foreign_type() {
  foreign_.parameters.back().type = pop_type();
  foreign_.parameters.back().span.end = last().end();
}
void Builder::foreign_default() {
  foreign_.parameters.back().value = pop_expression();
  foreign_.parameters.back().span.end = last().end();
}
void Builder::foreign_expression() {
  Statement s;
  s.value = pop_expression();
  s.span = s.value.span;
  Binder all;
  all.name = "=";
  all.span = s.span;
  all.spread = true;
  s.binders.push_back(std::move(all));
  foreign_.body.push_back(std::move(s));
}
void Builder::foreign_return() { foreign_.returns.emplace_back(word(last()), span(last())); }
void Builder::foreign_where() {
  foreign_.where = take_values(expressions_, marks_.back().expressions);
}
void Builder::foreign_block() {
  foreign_.block = true;
  foreign_.body = take(statements_, marks_.back().statements);
}
void Builder::end_foreign() {
  foreign_.span = since(close());
  items.emplace_back(std::move(foreign_));
}

// ---- tables, patterns, rules

void Builder::table_columns() {
  table_ = {};
  const std::size_t mark = marks_.back().names;
  table_.name = names_[mark].text;
  table_.name_span = names_[mark].span;
  table_.columns = take_words(mark + 1);
}
void Builder::table_product() {
  table_ = {};
  table_.name_span = names_.back().span;
  table_.name = pop_name().text;
}
void Builder::table_factor() {
  Named n = pop_name();
  table_.factors.emplace_back(std::move(n.text), n.span);
}
void Builder::table_row() {
  open();
  table_.rows.push_back({{}, word(last()), {}});
}
void Builder::end_row() {
  const Mark m = close();
  table_.rows.back().span = since(m);
  table_.rows.back().cells = take_values(expressions_, m.expressions);
}
void Builder::end_table() {
  table_.span = since(close());
  items.emplace_back(std::move(table_));
}

void Builder::pattern_recursive() { pattern_.recursive = true; }
void Builder::pattern_operands() {
  const std::size_t mark = marks_.back().names;
  pattern_.name = names_[mark].text;
  pattern_.name_span = names_[mark].span;
  pattern_.operands = take_words(mark + 1);
  pattern_.operand_types = take_pattern_types(pattern_.operands.size());
}
void Builder::pattern_type() {
  const std::size_t place = names_.size() - marks_.back().names - 2;
  pattern_types_.emplace_back(place, pop_type());
}
/// Returns the types of the names that were just read, by their places.
std::vector<std::vector<TypeExpr>> Builder::take_pattern_types(std::size_t count) {
  std::vector<std::vector<TypeExpr>> out(count);
  for (auto& [place, type] : pattern_types_) out[place].push_back(std::move(type));
  pattern_types_.clear();
  return out;
}
void Builder::pattern_attributes() {
  pattern_.attributes = take_values(attributes_, close().attributes);
}
void Builder::pattern_results() {
  pattern_.results = take_words(marks_.back().names + 1);
  pattern_.result_types = take_pattern_types(pattern_.results.size());
}
void Builder::end_alternative() {
  const Mark m = close();
  pattern_.alternatives.push_back(
      {take(clauses_, m.clauses), take(statements_, m.statements), std::move(op_variables_)});
  op_variables_.clear();
}
void Builder::end_pattern() {
  pattern_.span = since(close());
  items.emplace_back(std::move(pattern_));
}

void Builder::rule_variant() {
  rule_.table = pop_path().text;
  rule_.variant = pop_name().text;
}
void Builder::rule_over() {
  Named n = pop_name();
  rule_.over.emplace_back(std::move(n.text), n.span);
}
void Builder::rule_arrow() {
  const Mark& m = marks_.back();
  rule_.equivalence = last().kind == Tok::equivalent;
  rule_.body = {take(clauses_, m.clauses), take(statements_, m.statements),
                std::move(op_variables_)};
  op_variables_.clear();
}
void Builder::op_variable() {
  op_variables_.emplace_back();
  op_variables_.back().name = word(last());
  op_variables_.back().name_span = span(last());
}
void Builder::end_op_variable() {
  ast::OpVariable& variable = op_variables_.back();
  variable.trait = word(last());
  variable.trait_span = span(last());
  variable.span = since(close());
}
void Builder::end_rule() {
  const Mark m = close();
  rule_.span = since(m);
  rule_.replacement = take(statements_, m.statements);
  Named n = pop_name();
  rule_.name = std::move(n.text);
  rule_.name_span = n.span;
  items.emplace_back(std::move(rule_));
}

}  // namespace pw
