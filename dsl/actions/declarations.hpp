// Semantic actions for the small items: use, param, extern, table.
#pragma once

#include "dsl/actions/value_stacks.hpp"

namespace pw {

class UseActions : Actions {
 public:
  using Actions::Actions;
  void end();
};

class ParamActions : Actions {
 public:
  using Actions::Actions;
  void kind();
  void value();
  void end();

 private:
  ast::Param param_;
};

class ExternActions : Actions {
 public:
  using Actions::Actions;
  void predicate();
  void parameter_name();
  void parameter();
  void result();
  void end();

 private:
  ast::Extern extern_;
};

class TableActions : Actions {
 public:
  using Actions::Actions;
  void columns();
  void product();
  void factor();
  void row();
  void end_row();
  void end();

 private:
  ast::Table table_;
};

}  // namespace pw
