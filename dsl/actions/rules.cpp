#include "dsl/actions/rules.hpp"

namespace pw {

void PatternActions::recursive() { pattern_.recursive = true; }
void PatternActions::operands() {
  const std::size_t mark = stacks_.mark().names;
  pattern_.name = stacks_.names[mark].text;
  pattern_.name_span = stacks_.names[mark].span;
  pattern_.operands = stacks_.take_words(mark + 1);
  pattern_.operand_types = take_types(pattern_.operands.size());
}
void PatternActions::type() {
  const std::size_t place = stacks_.names.size() - stacks_.mark().names - 2;
  types_.emplace_back(place, stacks_.pop_type());
}
/// Returns the types of the names that were just read, by their places.
std::vector<std::vector<TypeExpr>> PatternActions::take_types(std::size_t count) {
  std::vector<std::vector<TypeExpr>> out(count);
  for (auto& [place, type] : types_) out[place].push_back(std::move(type));
  types_.clear();
  return out;
}
void PatternActions::attributes() {
  pattern_.attributes = take(stacks_.attributes, stacks_.close().attributes);
}
void PatternActions::results() {
  pattern_.results = stacks_.take_words(stacks_.mark().names + 1);
  pattern_.result_types = take_types(pattern_.results.size());
}
void PatternActions::end_alternative() {
  pattern_.alternatives.push_back(stacks_.take_body(stacks_.close()));
}
void PatternActions::end() {
  pattern_.span = stacks_.since(stacks_.close());
  stacks_.items.emplace_back(std::move(pattern_));
}

void RuleActions::variant() {
  rule_.table = stacks_.pop_path().text;
  rule_.variant = pop(stacks_.names).text;
}
void RuleActions::over() {
  ValueStacks::Named n = pop(stacks_.names);
  rule_.over.emplace_back(std::move(n.text), n.span);
}
void RuleActions::arrow() {
  rule_.equivalence = cursor_.last().kind == Tok::equivalent;
  rule_.body = stacks_.take_body(stacks_.mark());
}
void RuleActions::end() {
  const ValueStacks::Mark m = stacks_.close();
  rule_.span = stacks_.since(m);
  rule_.replacement = take(stacks_.statements, m.statements);
  ValueStacks::Named n = pop(stacks_.names);
  rule_.name = std::move(n.text);
  rule_.name_span = n.span;
  stacks_.items.emplace_back(std::move(rule_));
}

}  // namespace pw
