// Semantic actions for statements and for the clauses of a rule's or pattern's body.
#pragma once

#include "dsl/actions/value_stacks.hpp"

namespace pw {

class StatementActions : Actions {
 public:
  using Actions::Actions;
  void push_binder();
  void spread_binder();
  void type_binder();
  void set_many();
  void end();
};

class ClauseActions : Actions {
 public:
  using Actions::Actions;
  void end_guards();
  void end_block();
  void op_variable();
  void end_op_variable();
};

}  // namespace pw
