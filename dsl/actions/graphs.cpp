#include "dsl/actions/graphs.hpp"

namespace pw {

void GraphActions::open() {
  stacks_.open();
  graph_ = {};
}
void GraphActions::name() { graph_.name = cursor_.word(); }
void GraphActions::symbol_name() { graph_.symbols.emplace_back(cursor_.word(), SymbolFact{}); }
void GraphActions::symbol_min() {
  graph_.symbols.back().second.min = cursor_.integer(cursor_.before_last().kind == Tok::minus);
}
void GraphActions::symbol_max() {
  graph_.symbols.back().second.max = cursor_.integer(cursor_.before_last().kind == Tok::minus);
}
void GraphActions::symbol_multiple() { graph_.symbols.back().second.multiple = cursor_.integer(); }
void GraphActions::symbol_tokens() { graph_.symbols.back().second.role = "tokens"; }
void GraphActions::symbol_role() { graph_.symbols.back().second.role = cursor_.string(); }
void GraphActions::input_kind() { input_kind_ = cursor_.word(); }
void GraphActions::input_name() {
  ast::GraphItem::Input in;
  in.name = cursor_.word();
  in.span = cursor_.span();
  in.kind = input_kind_;
  graph_.inputs.push_back(std::move(in));
}
void GraphActions::input_type() {
  graph_.inputs.back().type = stacks_.pop_type();
  graph_.inputs.back().span.end = cursor_.last().end();
}
void GraphActions::no_input_type() {
  graph_.inputs.back().type.span = cursor_.span();
  graph_.inputs.back().span.end = cursor_.last().end();
}
void GraphActions::input_replicated() {
  graph_.inputs.back().replicated.push_back(cursor_.string());
  graph_.inputs.back().span.end = cursor_.last().end();
}
void GraphActions::end_inputs() { input_kind_.clear(); }
void GraphActions::op() { graph_.ops.push_back(stacks_.pop_item<ast::OpItem>()); }
void GraphActions::node() { graph_.nodes.push_back({pop(stacks_.statements), "", ""}); }
void GraphActions::node_group() { graph_.nodes.back().group = cursor_.string(); }
void GraphActions::node_source() { graph_.nodes.back().source = cursor_.string(); }
void GraphActions::output() { graph_.outputs.emplace_back(cursor_.word(), cursor_.span()); }
void GraphActions::written() {
  graph_.writes.push_back({cursor_.word(), "", cursor_.span(), cursor_.span()});
}
void GraphActions::write() {
  graph_.writes.back().value = cursor_.word();
  graph_.writes.back().value_span = cursor_.span();
}
void GraphActions::end() {
  graph_.span = stacks_.since(stacks_.close());
  stacks_.items.emplace_back(std::move(graph_));
}

// ---- tests

void ExpectationActions::open() {
  stacks_.open();
  mark_ = stacks_.expectations.size();
  because_code_.clear();
  because_text_.clear();
}
ast::Expectation& ExpectationActions::push(ast::Expectation::Kind kind) {
  ast::Expectation e;
  e.kind = kind;
  stacks_.expectations.push_back(std::move(e));
  return stacks_.expectations.back();
}
void ExpectationActions::none() { push(ast::Expectation::Kind::none); }
void ExpectationActions::guard() {
  Expr e = stacks_.pop_expression();
  const bool counts = e.kind == Expr::Kind::binary &&
                      (e.args[0].kind == Expr::Kind::path || e.args[0].kind == Expr::Kind::index);
  push(counts ? ast::Expectation::Kind::count : ast::Expectation::Kind::guard)
      .guard.push_back(std::move(e));
}
/// Adds `R == 2 in 1..256`: the count in one range.
void ExpectationActions::count_range() {
  Deep<Expr> to = pop(stacks_.expressions), from = pop(stacks_.expressions);
  std::vector<Expr>& guard = stacks_.expectations.back().guard;
  stacks_.push(std::move(guard[0]), 1);
  stacks_.push(std::move(from.value), from.depth);
  stacks_.push(std::move(to.value), to.depth);
  stacks_.fold(Expr::Kind::in_range, 3);
  guard[0] = stacks_.pop_expression();
}
void ExpectationActions::graph() {
  push(ast::Expectation::Kind::graph).graph.push_back(stacks_.pop_item<ast::GraphItem>());
}
void ExpectationActions::numeric() {
  push(ast::Expectation::Kind::numeric).within = cursor_.real();
}
void ExpectationActions::error() { push(ast::Expectation::Kind::error).error = cursor_.string(); }
void ExpectationActions::because_code() { because_code_ = cursor_.word(); }
void ExpectationActions::because_text() { because_text_ = cursor_.string(); }
void ExpectationActions::end() {
  const Span where = stacks_.since(stacks_.close());
  for (std::size_t i = mark_; i < stacks_.expectations.size(); ++i) {
    ast::Expectation& e = stacks_.expectations[i];
    e.span = where;
    e.because_code = because_code_;
    e.because_text = because_text_;
  }
}

void TestActions::graph() { test_.graph.push_back(stacks_.pop_item<ast::GraphItem>()); }
void TestActions::file() { test_.file = cursor_.string(); }
void TestActions::apply() {
  ValueStacks::Named n = pop(stacks_.names);
  test_.apply.emplace_back(std::move(n.text), n.span);
}
void TestActions::with() {
  test_.with.emplace_back(pop(stacks_.names).text, stacks_.pop_expression());
}
void TestActions::end() {
  test_.span = stacks_.since(stacks_.close());
  ValueStacks::Named n = pop(stacks_.names);
  test_.name = std::move(n.text);
  test_.name_span = n.span;
  test_.expectations = take(stacks_.expectations, 0);
  stacks_.items.emplace_back(std::move(test_));
}

}  // namespace pw
