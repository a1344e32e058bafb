// Semantic actions for ops and foreign ops.
#pragma once

#include "dsl/actions/value_stacks.hpp"

namespace pw {

class OpActions : Actions {
 public:
  using Actions::Actions;
  void name();
  void imported();
  void operand();
  void operand_mut();
  void operand_out();
  void operand_spread();
  void operand_optional();
  void operand_type();
  void attribute_name();
  void attribute_kind();
  void attribute_nullable();
  void attribute_default();
  void result_word();
  void result_spread();
  void result_type();
  void result_word_or_type();
  void result_from();
  void trait();
  void end();

 private:
  ast::OpItem op_;
};

class ForeignActions : Actions {
 public:
  using Actions::Actions;
  void path();
  void string();
  void parameter();
  void parameter_mut();
  void parameter_out();
  void alias();
  void type();
  void default_value();
  void expression();
  void return_name();
  void where();
  void block();
  void end();

 private:
  ast::ForeignItem foreign_;
};

}  // namespace pw
