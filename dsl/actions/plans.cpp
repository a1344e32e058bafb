#include "dsl/actions/plans.hpp"

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

void StrategyActions::close_simple() {
  const ValueStacks::Mark m = stacks_.close();
  ast::Strategy s;
  s.kind = simple_kind(m.begin->kind);
  s.span = stacks_.since(m);
  s.references = stacks_.take_names(m.names);
  stacks_.push(std::move(s), stacks_.strategies.size());
}
void StrategyActions::close_best() {
  const ValueStacks::Mark m = stacks_.close();
  ast::Strategy s;
  s.kind = ast::Strategy::Kind::best;
  s.span = stacks_.since(m);
  stacks_.push(std::move(s), m.strategies);
}
void StrategyActions::end_sequence() {
  const ValueStacks::Mark m = stacks_.close();
  ast::Strategy s;
  s.span = stacks_.strategies.size() == m.strategies ? cursor_.span() : stacks_.since(m);
  stacks_.push(std::move(s), m.strategies);
  ast::Strategy& top = stacks_.strategies.back().value;
  top = unwrapped(std::move(top));
}
void StrategyActions::close_sequence() {
  const ValueStacks::Mark m = stacks_.close();
  ast::Strategy s;
  s.span = stacks_.since(m);
  stacks_.push(std::move(s), m.strategies);
  ast::Strategy& top = stacks_.strategies.back().value;
  if (top.parts.size() == 1 && !has_options(top.parts[0])) top = unwrapped(std::move(top));
}
void StrategyActions::end_prefixes() {
  std::vector<ValueStacks::Operator>& operators = stacks_.operators;
  const std::size_t barrier = stacks_.operator_mark();
  while (operators.size() > barrier && operators.back().prefix) {
    const Token prefix = pop(operators).token;
    ast::Strategy s;
    s.kind = prefix.kind == Tok::atomic ? ast::Strategy::Kind::atomic : ast::Strategy::Kind::repeat;
    s.span = cursor_.since(prefix.begin);
    stacks_.push(std::move(s), stacks_.strategies.size() - 1);
  }
}
void StrategyActions::reference() {
  ValueStacks::Named n = pop(stacks_.names);
  ast::Strategy s;
  s.kind = ast::Strategy::Kind::reference;
  s.span = n.span;
  s.references.emplace_back(std::move(n.text), n.span);
  stacks_.push(std::move(s), stacks_.strategies.size());
}

/// Returns the last strategy, which the option at the cursor extends.
ast::Strategy& StrategyActions::extended() {
  ast::Strategy& s = stacks_.strategies.back().value;
  s.span.end = cursor_.last().end();
  return s;
}
void StrategyActions::fuel() { extended().fuel = cursor_.integer(); }
void StrategyActions::nodes() { extended().nodes = cursor_.integer(); }
void StrategyActions::rounds() { extended().rounds = cursor_.integer(); }
void StrategyActions::when() { extended().when = {stacks_.pop_expression()}; }
void StrategyActions::ensures() { extended().ensures = {stacks_.pop_expression()}; }
void StrategyActions::by() { extended().by = cursor_.word(); }
void StrategyActions::cost() { extended().cost = cursor_.word(); }

// ---- passes, pipelines

void PassActions::end() {
  const ValueStacks::Mark m = stacks_.close();
  ValueStacks::Named n = pop(stacks_.names);
  stacks_.items.emplace_back(
      ast::Pass{stacks_.since(m), n.span, std::move(n.text), pop(stacks_.strategies).value});
}

void PipelineActions::symbol() { pipeline_.ranges_symbol = cursor_.word(); }
void PipelineActions::range() { pipeline_.ranges.push_back(cursor_.integer()); }
void PipelineActions::end() {
  const ValueStacks::Mark m = stacks_.close();
  pipeline_.span = stacks_.since(m);
  ValueStacks::Named n = pop(stacks_.names);
  pipeline_.name = std::move(n.text);
  pipeline_.name_span = n.span;
  const ast::Strategy& top = stacks_.strategies.back().value;
  if (top.kind != ast::Strategy::Kind::sequence || has_options(top)) {
    ast::Strategy sequence;
    sequence.span = top.span;
    stacks_.push(std::move(sequence), stacks_.strategies.size() - 1);
  }
  pipeline_.strategy = pop(stacks_.strategies).value;
  stacks_.items.emplace_back(std::move(pipeline_));
}

// ---- split, capture

void SplitActions::at() { stacks_.names.push_back(stacks_.pop_path()); }
void SplitActions::end_at() {
  const ValueStacks::Mark m = stacks_.close();
  split_.at.push_back(
      {stacks_.since(m), stacks_.take_names(m.names), take(stacks_.expressions, m.expressions)});
}
void SplitActions::end() {
  split_.span = stacks_.since(stacks_.close());
  split_.name = pop(stacks_.names).text;
  stacks_.items.emplace_back(std::move(split_));
}

void CaptureActions::size_first() {
  capture_.sizes.push_back({cursor_.integer(), cursor_.integer(), 1});
}
void CaptureActions::size_last() { capture_.sizes.back().last = cursor_.integer(); }
void CaptureActions::size_step() { capture_.sizes.back().step = cursor_.integer(); }
void CaptureActions::mode() { capture_.mode = cursor_.word(); }
void CaptureActions::end() {
  capture_.span = stacks_.since(stacks_.close());
  stacks_.items.emplace_back(std::move(capture_));
}

// ---- explore

void ExploreActions::first() { numbers_.emplace_back(cursor_.integer(), cursor_.integer()); }
void ExploreActions::last() { numbers_.back().second = cursor_.integer(); }
void ExploreActions::end_clause() {
  const ValueStacks::Mark m = stacks_.close();
  ast::Explore::Clause clause;
  clause.kind = clause_kind(m.begin->kind);
  clause.span = stacks_.since(m);
  clause.names = stacks_.take_names(m.names);
  clause.values = take(stacks_.expressions, m.expressions);
  clause.numbers = take(numbers_, 0);
  explore_.clauses.push_back(std::move(clause));
}
void ExploreActions::end() {
  explore_.span = stacks_.since(stacks_.close());
  ValueStacks::Named n = pop(stacks_.names);
  explore_.name = std::move(n.text);
  explore_.name_span = n.span;
  stacks_.items.emplace_back(std::move(explore_));
}

}  // namespace pw
