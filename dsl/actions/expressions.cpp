#include "dsl/actions/expressions.hpp"

#include <limits>

#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

Span cover(Span a, Span b) { return {a.source, a.begin, b.end}; }

}  // namespace

// ---- names

void NameActions::push() { stacks_.names.push_back({cursor_.word(), cursor_.span()}); }
void NameActions::extend() {
  ValueStacks::Named& n = stacks_.names.back();
  if (cursor_.before_last().kind == Tok::dot) n.text += '.';
  n.text += cursor_.word();
  n.span.end = cursor_.last().end();
}

// ---- operands

Expr OperandActions::leaf(Expr::Kind kind) const {
  Expr e;
  e.kind = kind;
  e.span = cursor_.span();
  return e;
}
void OperandActions::integer() {
  Expr e = leaf(Expr::Kind::integer);
  const Token& before = cursor_.before_last();
  const bool negative = !stacks_.operators.empty() && stacks_.operators.back().prefix &&
                        stacks_.operators.back().token.begin == before.begin &&
                        before.kind == Tok::minus;
  e.integer = cursor_.text() == "9223372036854775808" && negative ? kSmallest : cursor_.integer();
  stacks_.push(std::move(e), 1);
}
void OperandActions::real() {
  Expr e = leaf(Expr::Kind::real);
  e.real = cursor_.real();
  stacks_.push(std::move(e), 1);
}
void OperandActions::string() {
  Expr e = leaf(Expr::Kind::string);
  e.text = cursor_.string();
  stacks_.push(std::move(e), 1);
}
void OperandActions::true_value() {
  Expr e = leaf(Expr::Kind::boolean);
  e.integer = 1;
  stacks_.push(std::move(e), 1);
}
void OperandActions::false_value() { stacks_.push(leaf(Expr::Kind::boolean), 1); }
void OperandActions::none() { stacks_.push(leaf(Expr::Kind::none), 1); }
void OperandActions::path() {
  Expr e = leaf(Expr::Kind::path);
  e.text = cursor_.word();
  stacks_.push(std::move(e), 1);
}
void OperandActions::extend_path() {
  Expr& e = stacks_.expressions.back().value;
  e.text += '.' + cursor_.word();
  e.span.end = cursor_.last().end();
}
void OperandActions::star() { stacks_.push(leaf(Expr::Kind::star), 1); }
void OperandActions::name_star() {
  Expr& e = stacks_.expressions.back().value;
  e.text = cursor_.word();
  e.span.end = cursor_.last().end();
}
void OperandActions::mark_optional() {
  Expr& e = stacks_.expressions.back().value;
  e.optional = true;
  e.span.end = cursor_.last().end();
}

void OperandActions::close_parens() {
  Deep<Expr>& e = stacks_.expressions.back();
  e.value.span = stacks_.since(stacks_.close());
  e.closed = true;
}
void OperandActions::close_list() {
  const ValueStacks::Mark m = stacks_.close();
  const unsigned depth = depth_above(stacks_.expressions, m.expressions, 1);
  Expr e;
  e.kind = Expr::Kind::list;
  e.span = stacks_.since(m);
  e.args = take(stacks_.expressions, m.expressions);
  stacks_.push(std::move(e), depth);
}
void OperandActions::close_call() {
  const ValueStacks::Mark m = stacks_.close();
  const unsigned depth = depth_above(stacks_.expressions, m.expressions, 1);
  std::vector<Expr> args = take(stacks_.expressions, m.expressions);
  Expr e = stacks_.pop_expression();
  e.kind = Expr::Kind::call;
  e.args = std::move(args);
  e.span.end = cursor_.last().end();
  stacks_.push(std::move(e), depth);
}
void OperandActions::close_index() {
  stacks_.close();
  stacks_.fold(Expr::Kind::index, 2);
}
void OperandActions::spread() { stacks_.fold(Expr::Kind::spread, 1); }

// ---- operators

void OperatorActions::push() { stacks_.operators.push_back({cursor_.last(), false}); }
void OperatorActions::push_prefix() {
  stacks_.operators.push_back({cursor_.last(), true});
  if (stacks_.operators.size() > 4 * kMaxDepth)
    ValueStacks::check_depth(cursor_.span(), kMaxDepth + 1);
}

void OperatorActions::fold_binary() {
  Deep<Expr> right = pop(stacks_.expressions), left = pop(stacks_.expressions);
  Expr e;
  e.kind = Expr::Kind::binary;
  e.text = cursor_.text(cursor_.span(pop(stacks_.operators).token));
  e.span = cover(left.value.span, right.value.span);
  e.args.push_back(std::move(left.value));
  e.args.push_back(std::move(right.value));
  stacks_.push(std::move(e), std::max(left.depth, right.depth) + 1);
}

void OperatorActions::fold_prefix(Tok kind) {
  std::vector<ValueStacks::Operator>& operators = stacks_.operators;
  const std::size_t barrier = stacks_.operator_mark();
  while (operators.size() > barrier && operators.back().prefix &&
         operators.back().token.kind == kind) {
    const Token sign = pop(operators).token;
    Deep<Expr> inner = pop(stacks_.expressions);
    const Span whole = cover(cursor_.span(sign), inner.value.span);
    if (kind == Tok::minus && negate_literal(inner.value)) {
      inner.value.span = whole;
      stacks_.push(std::move(inner.value), inner.depth);
      continue;
    }
    Expr e;
    e.kind = kind == Tok::minus ? Expr::Kind::negate : Expr::Kind::not_;
    e.span = whole;
    e.args.push_back(std::move(inner.value));
    stacks_.push(std::move(e), inner.depth + 1);
  }
}
void OperatorActions::fold_unary() { fold_prefix(Tok::minus); }
void OperatorActions::fold_not() { fold_prefix(Tok::not_); }

/// Folds `-3` into a number, so that numbers print as they read.
bool OperatorActions::negate_literal(Expr& e) const {
  if (e.kind == Expr::Kind::real) {
    e.real = -e.real;
    return true;
  }
  if (e.kind != Expr::Kind::integer) return false;
  if (e.integer == kSmallest && cursor_.text(e.span).front() == '-')
    refuse(e.span, "PW0104", "the number is out of range", "integers are signed, with 64 bits");
  if (e.integer != kSmallest) e.integer = -e.integer;
  return true;
}

void OperatorActions::close_in_set() {
  const std::size_t mark = stacks_.close().expressions;
  stacks_.fold(Expr::Kind::in_set, stacks_.expressions.size() - mark + 1);
}
void OperatorActions::fold_in_range() { stacks_.fold(Expr::Kind::in_range, 3); }
void OperatorActions::fold_in_name() { stacks_.fold(Expr::Kind::in_range, 2); }

// ---- attributes

void AttributeActions::open_rest() { stacks_.mark().open = true; }
void AttributeActions::push() {
  stacks_.attributes.push_back({{cursor_.word(), cursor_.span(), {}}, 1});
}
void AttributeActions::set() {
  Deep<Expr> value = pop(stacks_.expressions);
  Deep<AttributeArg>& attribute = stacks_.attributes.back();
  attribute.depth = value.depth;
  attribute.value.span.end = cursor_.last().end();
  attribute.value.value.push_back(std::move(value.value));
}
void AttributeActions::close() {
  const ValueStacks::Mark m = stacks_.close();
  Deep<Expr> e = pop(stacks_.expressions);
  e.depth = depth_above(stacks_.attributes, m.attributes, e.depth);
  e.value.braces = true;
  e.value.open = m.open;
  e.value.attributes = take(stacks_.attributes, m.attributes);
  e.value.span.end = cursor_.last().end();
  stacks_.push(std::move(e.value), e.depth);
}

// ---- types

void TypeActions::begin() {
  Deep<Expr> dtype = pop(stacks_.expressions);
  TypeExpr type;
  type.span = dtype.value.span;
  type.dtype.push_back(std::move(dtype.value));
  stacks_.types.push_back({std::move(type), dtype.depth + 1});
}
void TypeActions::begin_bare() {
  TypeExpr type;
  type.span = cursor_.span();
  stacks_.types.push_back({std::move(type), 1});
  stacks_.open();
}
void TypeActions::close_dims() {
  const ValueStacks::Mark m = stacks_.close();
  Deep<TypeExpr>& type = stacks_.types.back();
  type.depth = depth_above(stacks_.expressions, m.expressions, type.depth);
  type.value.any_shape = false;
  type.value.dims = take(stacks_.expressions, m.expressions);
  type.value.span.end = cursor_.last().end();
}

/// Refuses `x + b: T[m]`, which could state the type of `b` as well as that of the sum.
void TypeActions::refuse_open_type(const Expr& e) const {
  const bool infix = e.kind == Expr::Kind::binary || e.kind == Expr::Kind::negate;
  const bool condition =
      e.kind == Expr::Kind::not_ || e.kind == Expr::Kind::in_set || e.kind == Expr::Kind::in_range;
  if (!infix && !condition) return;
  const std::string whole(cursor_.text(e.span)), part(cursor_.text(e.args.back().span));
  const std::string_view op = e.kind == Expr::Kind::negate ? "neg" : primitive_of_infix(e.text);
  std::string help = "write `(" + whole + "): …` for the whole";
  if (!op.empty() && e.args.back().kind != Expr::Kind::integer) {
    const std::string left =
        e.args.size() > 1 ? std::string(cursor_.text(e.args.front().span)) + ", " : "";
    help += ", or `" + std::string(op) + "(" + left + part + ": …)` for " + "`" + part + "`";
  }
  refuse(e.span, "PW0111", "a type after `" + whole + "` may be meant for `" + part + "` alone",
         help);
}
void TypeActions::annotate() {
  if (!stacks_.expressions.back().closed) refuse_open_type(stacks_.expressions.back().value);
  Deep<Expr> e = pop(stacks_.expressions);
  e.depth = std::max(e.depth, stacks_.types.back().depth + 1);
  e.value.type.push_back(stacks_.pop_type());
  e.value.span.end = cursor_.last().end();
  stacks_.push(std::move(e.value), e.depth);
}

}  // namespace pw
