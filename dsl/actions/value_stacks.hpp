// The stacks through which the semantic actions of the grammar pass values. A production sets a
// mark, its parts push values, and its closing action folds everything above the mark into one
// tree. Invariant: outside of a production the stacks are as high as at its mark.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dsl/actions/token_cursor.hpp"

namespace pw {

/// A tree with its depth. Depths are counted as trees grow, so that no tree is too deep to copy
/// or destroy.
template <class T>
struct Deep {
  T value;
  unsigned depth = 0;
  bool closed = false;  ///< in parentheses
};

/// Takes the top off a stack.
template <class T>
T pop(std::vector<T>& from) {
  T out = std::move(from.back());
  from.pop_back();
  return out;
}
/// Takes all values above a mark.
template <class T>
std::vector<T> take(std::vector<T>& from, std::size_t mark) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(mark);
  std::vector<T> out(std::make_move_iterator(begin), std::make_move_iterator(from.end()));
  from.erase(begin, from.end());
  return out;
}
/// Takes the values above a mark off a stack that holds depths with them.
template <class T>
std::vector<T> take(std::vector<Deep<T>>& from, std::size_t mark) {
  std::vector<T> out;
  out.reserve(from.size() - mark);
  for (std::size_t i = mark; i < from.size(); ++i) out.push_back(std::move(from[i].value));
  from.resize(mark);
  return out;
}
/// Returns the depth of a tree of at least `depth` with the values above a mark as children.
template <class T>
unsigned depth_above(const std::vector<Deep<T>>& stack, std::size_t mark, unsigned depth) {
  for (std::size_t i = mark; i < stack.size(); ++i) depth = std::max(depth, stack[i].depth + 1);
  return depth;
}

class ValueStacks {
 public:
  struct Named {
    std::string text;
    Span span;
  };
  struct Operator {
    Token token;
    bool prefix = false;
  };
  struct Mark {
    const Token* begin = nullptr;
    std::size_t names = 0, expressions = 0, types = 0, attributes = 0, binders = 0, statements = 0,
                clauses = 0, operators = 0, strategies = 0;
    bool open = false, many = false;
  };

  explicit ValueStacks(const TokenCursor& cursor) : cursor_(cursor) {}

  void open();       ///< the token just matched begins a production
  void open_next();  ///< the next token begins a production
  Mark close();
  [[nodiscard]] Mark& mark() { return marks_.back(); }  ///< of the innermost production
  [[nodiscard]] std::size_t operator_mark() const;      ///< 0 outside of any production
  [[nodiscard]] Span since(const Mark& m) const { return cursor_.since(m.begin->begin); }

  /// Refuses a tree that is too deep.
  static void check_depth(Span at, unsigned depth);
  void push(Expr e, unsigned depth);
  /// Pushes a strategy whose parts are those above the mark.
  void push(ast::Strategy s, std::size_t mark);
  /// Replaces the last expressions by one over them.
  void fold(Expr::Kind kind, std::size_t operands);
  Expr pop_expression() { return pop(expressions).value; }
  TypeExpr pop_type() { return pop(types).value; }
  Named pop_path();  ///< an expression that is a path
  std::vector<std::string> take_words(std::size_t mark);
  std::vector<std::pair<std::string, Span>> take_names(std::size_t mark);
  ast::Body take_body(const Mark& m);
  /// Takes the last item, which is a T.
  template <class T>
  T pop_item() {
    return std::get<T>(pop(items));
  }

  std::vector<Named> names;
  std::vector<Deep<Expr>> expressions;
  std::vector<Deep<TypeExpr>> types;
  std::vector<Deep<AttributeArg>> attributes;
  std::vector<Binder> binders;
  std::vector<Statement> statements;
  std::vector<ast::Clause> clauses;
  std::vector<ast::OpVariable> op_variables;  ///< of the current body
  std::vector<Operator> operators;
  std::vector<Deep<ast::Strategy>> strategies;
  std::vector<ast::Expectation> expectations;
  std::vector<ast::Item> items;  ///< at the end none or one

 private:
  const TokenCursor& cursor_;
  std::vector<Mark> marks_;
};

/// Base of a group of actions: the token that they read and the stacks that they change.
class Actions {
 public:
  Actions(const TokenCursor& cursor, ValueStacks& stacks) : cursor_(cursor), stacks_(stacks) {}

 protected:
  const TokenCursor& cursor_;
  ValueStacks& stacks_;
};

}  // namespace pw
