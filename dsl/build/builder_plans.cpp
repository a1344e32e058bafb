#include <algorithm>
#include <charconv>

#include "dsl/build/builder.hpp"
#include "dsl/build/builder_take.hpp"

namespace pw {
namespace {

bool has_options(const ast::Strategy& s) {
  return s.fuel || s.nodes || s.rounds || !s.when.empty() || !s.ensures.empty() || !s.by.empty() ||
         !s.cost.empty();
}

/// Replaces a sequence of one part by that part, unless both have options.
ast::Strategy unwrapped(ast::Strategy s) {
  while (s.kind == ast::Strategy::Kind::sequence && s.parts.size() == 1 && !has_options(s)) {
    ast::Strategy part = std::move(s.parts[0]);
    s = std::move(part);
  }
  return s;
}

ast::Strategy::Kind simple_kind(Tok t) {
  if (t == Tok::greedy) return ast::Strategy::Kind::greedy;
  if (t == Tok::once) return ast::Strategy::Kind::once;
  return t == Tok::walk ? ast::Strategy::Kind::walk : ast::Strategy::Kind::saturate;
}

/// Returns the kind of a clause of `explore` by its first word.
ast::Explore::Clause::Kind clause_kind(Tok t) {
  using Kind = ast::Explore::Clause::Kind;
  constexpr std::pair<Tok, Kind> kKinds[] = {
      {Tok::of, Kind::of},           {Tok::orders, Kind::orders}, {Tok::before, Kind::before},
      {Tok::subsets, Kind::subsets}, {Tok::over, Kind::over},     {Tok::with, Kind::with},
      {Tok::tokens, Kind::tokens},   {Tok::sample, Kind::sample}, {Tok::seed, Kind::seed},
  };
  for (const auto& [word, kind] : kKinds)
    if (word == t) return kind;
  return Kind::by;
}

}  // namespace

// ---- strategies

void Builder::push_strategy(ast::Strategy s, std::size_t mark) {
  unsigned depth = 1;
  for (std::size_t i = mark; i < strategies_.size(); ++i)
    depth = std::max(depth, strategies_[i].depth + 1);
  check_depth(s.span, depth);
  s.parts = take_values(strategies_, mark);
  strategies_.push_back({std::move(s), depth});
}
void Builder::close_simple() {
  const Mark m = close();
  ast::Strategy s;
  s.kind = simple_kind(m.begin->kind);
  s.span = since(m);
  s.references = take_names(m.names);
  push_strategy(std::move(s), strategies_.size());
}
void Builder::close_best() {
  const Mark m = close();
  ast::Strategy s;
  s.kind = ast::Strategy::Kind::best;
  s.span = since(m);
  push_strategy(std::move(s), m.strategies);
}
void Builder::end_sequence() {
  const Mark m = close();
  ast::Strategy s;
  s.span = strategies_.size() == m.strategies ? span(last()) : since(m);
  push_strategy(std::move(s), m.strategies);
  strategy() = unwrapped(std::move(strategy()));
}
void Builder::close_sequence() {
  const Mark m = close();
  ast::Strategy s;
  s.span = since(m);
  push_strategy(std::move(s), m.strategies);
  if (strategy().parts.size() == 1 && !has_options(strategy().parts[0]))
    strategy() = unwrapped(std::move(strategy()));
}
void Builder::end_prefixes() {
  const std::size_t barrier = marks_.back().operators;
  while (operators_.size() > barrier && operators_.back().prefix) {
    const Token prefix = operators_.back().token;
    operators_.pop_back();
    ast::Strategy s;
    s.kind = prefix.kind == Tok::atomic ? ast::Strategy::Kind::atomic : ast::Strategy::Kind::repeat;
    s.span = {source_, prefix.begin, last().end()};
    push_strategy(std::move(s), strategies_.size() - 1);
  }
}
void Builder::reference() {
  Named n = pop_name();
  ast::Strategy s;
  s.kind = ast::Strategy::Kind::reference;
  s.span = n.span;
  s.references.emplace_back(std::move(n.text), n.span);
  push_strategy(std::move(s), strategies_.size());
}

void Builder::extend_strategy() { strategy().span.end = last().end(); }
void Builder::fuel() { strategy().fuel = integer(), extend_strategy(); }
void Builder::nodes() { strategy().nodes = integer(), extend_strategy(); }
void Builder::rounds() { strategy().rounds = integer(), extend_strategy(); }
void Builder::when() { strategy().when = {pop_expression()}, extend_strategy(); }
void Builder::ensures() { strategy().ensures = {pop_expression()}, extend_strategy(); }
void Builder::by() { strategy().by = word(last()), extend_strategy(); }
void Builder::cost() { strategy().cost = word(last()), extend_strategy(); }

void Builder::end_pass() {
  const Mark m = close();
  Named n = pop_name();
  ast::Pass pass{since(m), n.span, std::move(n.text), std::move(strategy())};
  strategies_.pop_back();
  items.emplace_back(std::move(pass));
}
void Builder::pipeline_symbol() { pipeline_.ranges_symbol = word(last()); }
void Builder::pipeline_range() { pipeline_.ranges.push_back(integer()); }
void Builder::end_pipeline() {
  const Mark m = close();
  pipeline_.span = since(m);
  Named n = pop_name();
  pipeline_.name = std::move(n.text);
  pipeline_.name_span = n.span;
  const bool plain = strategy().kind == ast::Strategy::Kind::sequence && !has_options(strategy());
  if (!plain) {
    ast::Strategy sequence;
    sequence.span = strategy().span;
    push_strategy(std::move(sequence), strategies_.size() - 1);
  }
  pipeline_.strategy = std::move(strategy());
  strategies_.pop_back();
  items.emplace_back(std::move(pipeline_));
}

// ---- split, capture

void Builder::split_at() {
  Named n = pop_path();
  names_.push_back(std::move(n));
}
void Builder::split_when() {}
void Builder::end_at() {
  const Mark m = close();
  split_.at.push_back({since(m), take_names(m.names), take_values(expressions_, m.expressions)});
}
void Builder::end_split() {
  split_.span = since(close());
  split_.name = pop_name().text;
  items.emplace_back(std::move(split_));
}
void Builder::size_first() { capture_.sizes.push_back({integer(), integer(), 1}); }
void Builder::size_last() { capture_.sizes.back().last = integer(); }
void Builder::size_step() { capture_.sizes.back().step = integer(); }
void Builder::capture_mode() { capture_.mode = word(last()); }
void Builder::end_capture() {
  capture_.span = since(close());
  items.emplace_back(std::move(capture_));
}

// ---- explore

void Builder::explore_first() { explore_numbers_.emplace_back(integer(), integer()); }
void Builder::explore_last() { explore_numbers_.back().second = integer(); }
void Builder::end_explore_clause() {
  const Mark m = close();
  ast::Explore::Clause clause;
  clause.kind = clause_kind(m.begin->kind);
  clause.span = since(m);
  clause.names = take_names(m.names);
  clause.values = take_values(expressions_, m.expressions);
  clause.numbers = std::move(explore_numbers_);
  explore_numbers_.clear();
  explore_.clauses.push_back(std::move(clause));
}
void Builder::end_explore() {
  explore_.span = since(close());
  Named n = pop_name();
  explore_.name = std::move(n.text);
  explore_.name_span = n.span;
  items.emplace_back(std::move(explore_));
}

// ---- graphs

void Builder::open_graph() {
  open();
  graph_ = {};
}
void Builder::graph_name() { graph_.name = word(last()); }
void Builder::symbol_name() { graph_.symbols.emplace_back(word(last()), SymbolFact{}); }
void Builder::symbol_min() {
  graph_.symbols.back().second.min = integer(at_[-2].kind == Tok::minus);
}
void Builder::symbol_max() {
  graph_.symbols.back().second.max = integer(at_[-2].kind == Tok::minus);
}
void Builder::symbol_multiple() { graph_.symbols.back().second.multiple = integer(); }
void Builder::symbol_tokens() { graph_.symbols.back().second.role = "tokens"; }
void Builder::symbol_role() { graph_.symbols.back().second.role = unescape(text(last())); }
void Builder::graph_op() { graph_.ops.push_back(std::move(op_)); }
void Builder::input_kind() { input_kind_ = word(last()); }
void Builder::input_name() {
  ast::GraphItem::Input in;
  in.name = word(last());
  in.span = span(last());
  in.kind = input_kind_;
  graph_.inputs.push_back(std::move(in));
}
void Builder::input_type() {
  graph_.inputs.back().type = pop_type();
  graph_.inputs.back().span.end = last().end();
}
void Builder::no_input_type() {
  graph_.inputs.back().type.span = span(last());
  graph_.inputs.back().span.end = last().end();
}
void Builder::input_replicated() {
  graph_.inputs.back().replicated.push_back(unescape(text(last())));
  graph_.inputs.back().span.end = last().end();
}
void Builder::end_inputs() { input_kind_.clear(); }
void Builder::graph_node() {
  graph_.nodes.push_back({std::move(statements_.back()), "", ""});
  statements_.pop_back();
}
void Builder::node_group() { graph_.nodes.back().group = unescape(text(last())); }
void Builder::node_source() { graph_.nodes.back().source = unescape(text(last())); }
void Builder::graph_output() { graph_.outputs.emplace_back(word(last()), span(last())); }
void Builder::graph_written() {
  graph_.writes.push_back({word(last()), "", span(last()), span(last())});
}
void Builder::graph_write() {
  graph_.writes.back().value = word(last());
  graph_.writes.back().value_span = span(last());
}
void Builder::end_graph() { graph_.span = since(close()); }
void Builder::item_graph() { items.emplace_back(std::move(graph_)); }

// ---- tests

void Builder::test_graph() { test_.graph.push_back(std::move(graph_)); }
void Builder::test_file() { test_.file = unescape(text(last())); }
void Builder::test_apply() {
  Named n = pop_name();
  test_.apply.emplace_back(std::move(n.text), n.span);
}
void Builder::test_with() { test_.with.emplace_back(pop_name().text, pop_expression()); }

void Builder::open_expect() {
  open();
  expectations_ = test_.expectations.size();
  because_code_.clear();
  because_text_.clear();
}
ast::Expectation& Builder::expectation(ast::Expectation::Kind kind) {
  ast::Expectation e;
  e.kind = kind;
  test_.expectations.push_back(std::move(e));
  return test_.expectations.back();
}
void Builder::expect_none() { expectation(ast::Expectation::Kind::none); }
void Builder::expect_guard() {
  Expr e = pop_expression();
  const bool counts = e.kind == Expr::Kind::binary &&
                      (e.args[0].kind == Expr::Kind::path || e.args[0].kind == Expr::Kind::index);
  expectation(counts ? ast::Expectation::Kind::count : ast::Expectation::Kind::guard)
      .guard.push_back(std::move(e));
}
/// Adds `R == 2 in 1..256`: the count in one range.
void Builder::expect_count_range() {
  Deep<Expr> to = pop(), from = pop();
  std::vector<Expr>& guard = test_.expectations.back().guard;
  push(std::move(guard[0]), 1);
  push(std::move(from.value), from.depth);
  push(std::move(to.value), to.depth);
  fold_in_range();
  guard[0] = pop_expression();
}
void Builder::expect_graph() {
  expectation(ast::Expectation::Kind::graph).graph.push_back(std::move(graph_));
}
void Builder::expect_numeric() {
  const std::string_view digits = text(last());
  double within = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), within);
  expectation(ast::Expectation::Kind::numeric).within = within;
}
void Builder::expect_error() {
  expectation(ast::Expectation::Kind::error).error = unescape(text(last()));
}
void Builder::because_code() { because_code_ = word(last()); }
void Builder::because_text() { because_text_ = unescape(text(last())); }
void Builder::end_expect() {
  const Span where = since(close());
  for (std::size_t i = expectations_; i < test_.expectations.size(); ++i) {
    test_.expectations[i].span = where;
    test_.expectations[i].because_code = because_code_;
    test_.expectations[i].because_text = because_text_;
  }
}
void Builder::end_test() {
  test_.span = since(close());
  Named n = pop_name();
  test_.name = std::move(n.text);
  test_.name_span = n.span;
  items.emplace_back(std::move(test_));
}

}  // namespace pw
