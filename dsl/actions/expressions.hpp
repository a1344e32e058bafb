// Semantic actions for names, expressions and types.
#pragma once

#include "dsl/actions/value_stacks.hpp"

namespace pw {

class NameActions : Actions {
 public:
  using Actions::Actions;
  void push();
  void extend();
};

/// Actions of operands: literals, paths, calls, lists.
class OperandActions : Actions {
 public:
  using Actions::Actions;
  void path();
  void extend_path();
  void integer();
  void real();
  void string();
  void true_value();
  void false_value();
  void none();
  void star();
  void name_star();
  void mark_optional();
  void close_list();
  void close_parens();
  void close_call();
  void close_index();
  void spread();

 private:
  [[nodiscard]] Expr leaf(Expr::Kind kind) const;
};

class OperatorActions : Actions {
 public:
  using Actions::Actions;
  void push();
  void push_prefix();
  void fold_binary();
  void fold_not();
  void fold_unary();
  void close_in_set();
  void fold_in_range();
  void fold_in_name();

 private:
  void fold_prefix(Tok kind);
  [[nodiscard]] bool negate_literal(Expr& e) const;
};

/// Actions of `{name = value, …}` after a call.
class AttributeActions : Actions {
 public:
  using Actions::Actions;
  void open_rest();
  void push();
  void set();
  void close();
};

class TypeActions : Actions {
 public:
  using Actions::Actions;
  void begin();
  void begin_bare();
  void close_dims();
  void annotate();

 private:
  void refuse_open_type(const Expr& e) const;
};

}  // namespace pw
