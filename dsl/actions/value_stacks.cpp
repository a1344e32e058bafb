// Each value is moved once for each level of the tree, so building is linear in the tokens times
// the depth, which is bounded.
#include "dsl/actions/value_stacks.hpp"

namespace pw {

void ValueStacks::open() {
  marks_.push_back({&cursor_.last(), names.size(), expressions.size(), types.size(),
                    attributes.size(), binders.size(), statements.size(), clauses.size(),
                    operators.size(), strategies.size(), false, false});
}
void ValueStacks::open_next() {
  open();
  marks_.back().begin = cursor_.next();
}
ValueStacks::Mark ValueStacks::close() { return pop(marks_); }
std::size_t ValueStacks::operator_mark() const {
  return marks_.empty() ? 0 : marks_.back().operators;
}

void ValueStacks::check_depth(Span at, unsigned depth) {
  if (depth > kMaxDepth)
    refuse(at, "PW0107", "the expression is more than 256 operations deep",
           "give a part of it its own name");
}
void ValueStacks::push(Expr e, unsigned depth) {
  check_depth(e.span, depth);
  expressions.push_back({std::move(e), depth});
}
void ValueStacks::push(ast::Strategy s, std::size_t mark) {
  const unsigned depth = depth_above(strategies, mark, 1);
  check_depth(s.span, depth);
  s.parts = take(strategies, mark);
  strategies.push_back({std::move(s), depth});
}
void ValueStacks::fold(Expr::Kind kind, std::size_t operands) {
  const std::size_t mark = expressions.size() - operands;
  const unsigned depth = depth_above(expressions, mark, 1);
  Expr e;
  e.kind = kind;
  e.span = cursor_.since(expressions[mark].value.span.begin);
  e.args = take(expressions, mark);
  push(std::move(e), depth);
}

ValueStacks::Named ValueStacks::pop_path() {
  Expr e = pop_expression();
  return {std::move(e.text), e.span};
}
std::vector<std::string> ValueStacks::take_words(std::size_t mark) {
  std::vector<std::string> out;
  for (Named& n : take(names, mark)) out.push_back(std::move(n.text));
  return out;
}
std::vector<std::pair<std::string, Span>> ValueStacks::take_names(std::size_t mark) {
  std::vector<std::pair<std::string, Span>> out;
  for (Named& n : take(names, mark)) out.emplace_back(std::move(n.text), n.span);
  return out;
}
ast::Body ValueStacks::take_body(const Mark& m) {
  return {take(clauses, m.clauses), take(statements, m.statements), take(op_variables, 0)};
}

}  // namespace pw
