// Semantic actions of a predictive parser (see syntax/grammar.cpp): each production opens a mark on
// the stacks, its parts push values, and its closing action folds everything above the mark into
// one tree. Invariant: outside of a production the stacks are as high as at its mark. Each value is
// moved once for each level of the tree, so building is linear in the tokens times the depth, which
// is bounded.
#include "dsl/build/builder.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "dsl/build/builder_take.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();

Span cover(Span a, Span b) { return {a.source, a.begin, b.end}; }

}  // namespace

// ---- marks and stacks

void Builder::open() {
  marks_.push_back({&last(), names_.size(), expressions_.size(), types_.size(), attributes_.size(),
                    binders_.size(), statements_.size(), clauses_.size(), operators_.size(),
                    strategies_.size(), false, false});
}
void Builder::open_next() {
  open();
  marks_.back().begin = at_;
}
Builder::Mark Builder::close() {
  const Mark m = marks_.back();
  marks_.pop_back();
  return m;
}

std::string Builder::word(const Token& t) const {
  return t.kind == Tok::quoted ? unescape(text(t)) : std::string(text(t));
}

void Builder::refuse(Span at, std::string_view code, std::string message, std::string help) {
  throw Refused{error_at(at, code, std::move(message), std::move(help))};
}

void Builder::check_depth(Span at, unsigned depth) {
  if (depth > kMaxDepth)
    refuse(at, "PW0107", "the expression is more than 256 operations deep",
           "give a part of it its own name");
}

void Builder::push(Expr e, unsigned depth) {
  check_depth(e.span, depth);
  expressions_.push_back({std::move(e), depth});
}
Builder::Deep<Expr> Builder::pop() {
  Deep<Expr> e = std::move(expressions_.back());
  expressions_.pop_back();
  return e;
}
TypeExpr Builder::pop_type() {
  TypeExpr type = std::move(types_.back().value);
  types_.pop_back();
  return type;
}
Builder::Named Builder::pop_name() {
  Named n = std::move(names_.back());
  names_.pop_back();
  return n;
}
Builder::Named Builder::pop_path() {
  Expr e = pop_expression();
  return {std::move(e.text), e.span};
}
std::vector<Expr> Builder::take_expressions(std::size_t mark, unsigned& depth) {
  for (std::size_t i = mark; i < expressions_.size(); ++i)
    depth = std::max(depth, expressions_[i].depth + 1);
  return take_values(expressions_, mark);
}
std::vector<std::string> Builder::take_words(std::size_t mark) {
  std::vector<std::string> out;
  for (Named& n : take(names_, mark)) out.push_back(std::move(n.text));
  return out;
}
std::vector<std::pair<std::string, Span>> Builder::take_names(std::size_t mark) {
  std::vector<std::pair<std::string, Span>> out;
  for (Named& n : take(names_, mark)) out.emplace_back(std::move(n.text), n.span);
  return out;
}

void Builder::push_name() { names_.push_back({word(last()), span(last())}); }
void Builder::extend_name() {
  Named& n = names_.back();
  if (at_[-2].kind == Tok::dot) n.text += '.';
  n.text += word(last());
  n.span.end = last().end();
}

// ---- leaves

Expr Builder::leaf(Expr::Kind kind) const {
  Expr e;
  e.kind = kind;
  e.span = span(last());
  return e;
}
std::int64_t Builder::integer(bool negative) const {
  std::uint64_t magnitude = 0;
  const std::string_view digits = text(last());
  std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
  const std::uint64_t limit = std::uint64_t{1} << 63;
  if (magnitude >= limit && !(negative && magnitude == limit))
    refuse(span(last()), "PW0104", "the number is out of range",
           "integers are signed, with 64 bits");
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

void Builder::push_integer() {
  Expr e = leaf(Expr::Kind::integer);
  const bool negative = !operators_.empty() && operators_.back().prefix &&
                        operators_.back().token.begin == at_[-2].begin &&
                        at_[-2].kind == Tok::minus;
  e.integer = text(last()) == "9223372036854775808" && negative ? kSmallest : integer();
  push(std::move(e), 1);
}
void Builder::push_real() {
  Expr e = leaf(Expr::Kind::real);
  const std::string_view digits = text(last());
  std::from_chars(digits.data(), digits.data() + digits.size(), e.real);
  push(std::move(e), 1);
}
void Builder::push_string() {
  Expr e = leaf(Expr::Kind::string);
  e.text = unescape(text(last()));
  push(std::move(e), 1);
}
void Builder::push_true() {
  Expr e = leaf(Expr::Kind::boolean);
  e.integer = 1;
  push(std::move(e), 1);
}
void Builder::push_false() { push(leaf(Expr::Kind::boolean), 1); }
void Builder::push_none() { push(leaf(Expr::Kind::none), 1); }
void Builder::push_path() {
  Expr e = leaf(Expr::Kind::path);
  e.text = word(last());
  push(std::move(e), 1);
}
void Builder::extend_path() {
  Expr& e = expressions_.back().value;
  e.text += '.' + word(last());
  e.span.end = last().end();
}
void Builder::push_star() { push(leaf(Expr::Kind::star), 1); }
void Builder::name_star() {
  Expr& e = expressions_.back().value;
  e.text = word(last());
  e.span.end = last().end();
}
void Builder::mark_optional() {
  Expr& e = expressions_.back().value;
  e.optional = true;
  e.span.end = last().end();
}

// ---- operators

void Builder::push_operator() { operators_.push_back({last(), false}); }
void Builder::push_prefix() {
  operators_.push_back({last(), true});
  if (operators_.size() > 4 * kMaxDepth) check_depth(span(last()), kMaxDepth + 1);
}

void Builder::fold_binary() {
  Deep<Expr> right = pop(), left = pop();
  Expr e;
  e.kind = Expr::Kind::binary;
  e.text = text(operators_.back().token);
  operators_.pop_back();
  e.span = cover(left.value.span, right.value.span);
  e.args.push_back(std::move(left.value));
  e.args.push_back(std::move(right.value));
  push(std::move(e), std::max(left.depth, right.depth) + 1);
}

void Builder::fold_prefix(Tok kind) {
  const std::size_t barrier = marks_.empty() ? 0 : marks_.back().operators;
  while (operators_.size() > barrier && operators_.back().prefix &&
         operators_.back().token.kind == kind) {
    const Token sign = operators_.back().token;
    operators_.pop_back();
    Deep<Expr> inner = pop();
    const Span whole = cover(span(sign), inner.value.span);
    if (kind == Tok::minus && negate_literal(inner.value)) {
      inner.value.span = whole;
      push(std::move(inner.value), inner.depth);
      continue;
    }
    Expr e;
    e.kind = kind == Tok::minus ? Expr::Kind::negate : Expr::Kind::not_;
    e.span = whole;
    e.args.push_back(std::move(inner.value));
    push(std::move(e), inner.depth + 1);
  }
}
void Builder::fold_unary() { fold_prefix(Tok::minus); }
void Builder::fold_not() { fold_prefix(Tok::not_); }

/// Folds `-3` into a number, so that numbers print as they read.
bool Builder::negate_literal(Expr& e) const {
  if (e.kind == Expr::Kind::real) {
    e.real = -e.real;
    return true;
  }
  if (e.kind != Expr::Kind::integer) return false;
  if (e.integer == kSmallest && text_[e.span.begin] == '-')
    refuse(e.span, "PW0104", "the number is out of range", "integers are signed, with 64 bits");
  if (e.integer != kSmallest) e.integer = -e.integer;
  return true;
}

void Builder::fold_in(Expr::Kind kind, std::size_t operands) {
  std::vector<Deep<Expr>> parts = take(expressions_, expressions_.size() - operands);
  Expr e;
  e.kind = kind;
  e.span = {source_, parts.front().value.span.begin, last().end()};
  unsigned depth = 0;
  for (Deep<Expr>& part : parts) {
    depth = std::max(depth, part.depth);
    e.args.push_back(std::move(part.value));
  }
  push(std::move(e), depth + 1);
}
void Builder::close_in_set() {
  fold_in(Expr::Kind::in_set, expressions_.size() - close().expressions + 1);
}
void Builder::fold_in_range() { fold_in(Expr::Kind::in_range, 3); }
void Builder::fold_in_name() { fold_in(Expr::Kind::in_range, 2); }

void Builder::close_parens() {
  expressions_.back().value.span = since(close());
  expressions_.back().closed = true;
}

void Builder::close_list() {
  const Mark m = close();
  Expr e;
  e.kind = Expr::Kind::list;
  e.span = since(m);
  unsigned depth = 1;
  e.args = take_expressions(m.expressions, depth);
  push(std::move(e), depth);
}

void Builder::close_call() {
  const Mark m = close();
  unsigned depth = 1;
  std::vector<Expr> args = take_expressions(m.expressions, depth);
  Expr e = pop_expression();
  e.kind = Expr::Kind::call;
  e.args = std::move(args);
  e.span.end = last().end();
  push(std::move(e), depth);
}

void Builder::close_attributes() {
  const Mark m = close();
  Deep<Expr> e = pop();
  for (std::size_t i = m.attributes; i < attributes_.size(); ++i)
    e.depth = std::max(e.depth, attributes_[i].depth + 1);
  e.value.braces = true;
  e.value.open = m.open;
  e.value.attributes = take_values(attributes_, m.attributes);
  e.value.span.end = last().end();
  push(std::move(e.value), e.depth);
}
void Builder::open_attributes() { marks_.back().open = true; }
void Builder::push_attribute() { attributes_.push_back({{word(last()), span(last()), {}}, 1}); }
void Builder::set_attribute() {
  Deep<Expr> value = pop();
  Deep<AttributeArg>& attribute = attributes_.back();
  attribute.depth = value.depth;
  attribute.value.span.end = last().end();
  attribute.value.value.push_back(std::move(value.value));
}

void Builder::close_index() {
  close();
  Deep<Expr> index = pop(), base = pop();
  Expr e;
  e.kind = Expr::Kind::index;
  e.span = {source_, base.value.span.begin, last().end()};
  e.args.push_back(std::move(base.value));
  e.args.push_back(std::move(index.value));
  push(std::move(e), std::max(base.depth, index.depth) + 1);
}
void Builder::spread() {
  Deep<Expr> inner = pop();
  Expr e;
  e.kind = Expr::Kind::spread;
  e.span = {source_, inner.value.span.begin, last().end()};
  e.args.push_back(std::move(inner.value));
  push(std::move(e), inner.depth + 1);
}
/// Refuses `x + b: T[m]`, which could state the type of `b` as well as that of the sum.
void Builder::refuse_open_type(const Expr& e) const {
  const bool infix = e.kind == Expr::Kind::binary || e.kind == Expr::Kind::negate;
  const bool condition =
      e.kind == Expr::Kind::not_ || e.kind == Expr::Kind::in_set || e.kind == Expr::Kind::in_range;
  if (!infix && !condition) return;
  const auto written = [&](Span s) { return text_.substr(s.begin, s.end - s.begin); };
  const std::string whole(written(e.span)), part(written(e.args.back().span));
  const std::string_view op = e.kind == Expr::Kind::negate ? "neg" : primitive_of_infix(e.text);
  std::string help = "write `(" + whole + "): …` for the whole";
  if (!op.empty() && e.args.back().kind != Expr::Kind::integer) {
    const std::string left =
        e.args.size() > 1 ? std::string(written(e.args.front().span)) + ", " : "";
    help += ", or `" + std::string(op) + "(" + left + part + ": …)` for " + "`" + part + "`";
  }
  refuse(e.span, "PW0111", "a type behind `" + whole + "` may be meant for `" + part + "` alone",
         help);
}

void Builder::annotate() {
  if (!expressions_.back().closed) refuse_open_type(expressions_.back().value);
  Deep<Expr> e = pop();
  e.depth = std::max(e.depth, types_.back().depth + 1);
  e.value.type.push_back(pop_type());
  e.value.span.end = last().end();
  push(std::move(e.value), e.depth);
}

// ---- types

void Builder::begin_type() {
  Deep<Expr> dtype = pop();
  TypeExpr type;
  type.span = dtype.value.span;
  type.dtype.push_back(std::move(dtype.value));
  types_.push_back({std::move(type), dtype.depth + 1});
}
void Builder::begin_bare_type() {
  TypeExpr type;
  type.span = span(last());
  types_.push_back({std::move(type), 1});
  open();
}
void Builder::close_dims() {
  const Mark m = close();
  Deep<TypeExpr>& type = types_.back();
  type.value.any_shape = false;
  type.value.dims = take_expressions(m.expressions, type.depth);
  type.value.span.end = last().end();
}

// ---- statements and clauses

void Builder::push_binder() {
  Binder b;
  b.name = word(last());
  b.span = span(last());
  binders_.push_back(std::move(b));
}
void Builder::spread_binder() {
  binders_.back().spread = true;
  binders_.back().span.end = last().end();
}
void Builder::type_binder() {
  binders_.back().type.push_back(pop_type());
  binders_.back().span.end = last().end();
}
void Builder::set_many() { marks_.back().many = true; }
void Builder::end_statement() {
  const Mark m = close();
  Statement s;
  s.span = since(m);
  s.many = m.many;
  s.binders = take(binders_, m.binders);
  s.value = pop_expression();
  const bool word_alone =
      s.value.kind == Expr::Kind::path && !s.value.optional && s.value.text == "fuse";
  if (word_alone && !s.binders.empty()) s.value.kind = Expr::Kind::fuse;
  statements_.push_back(std::move(s));
}

void Builder::end_guards() {
  const Mark m = close();
  ast::Clause c;
  c.kind = m.begin->kind == Tok::where ? ast::Clause::Kind::where : ast::Clause::Kind::assume;
  c.span = since(m);
  c.guards = take_values(expressions_, m.expressions);
  clauses_.push_back(std::move(c));
}
void Builder::end_block() {
  const Mark m = close();
  ast::Clause c;
  c.kind = m.begin->kind == Tok::given ? ast::Clause::Kind::given : ast::Clause::Kind::unless;
  c.span = since(m);
  c.statements = take(statements_, m.statements);
  clauses_.push_back(std::move(c));
}

}  // namespace pw
