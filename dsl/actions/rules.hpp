// Semantic actions for patterns and rules.
#pragma once

#include "dsl/actions/value_stacks.hpp"

namespace pw {

class PatternActions : Actions {
 public:
  using Actions::Actions;
  void recursive();
  void operands();
  void type();
  void attributes();
  void results();
  void end_alternative();
  void end();

 private:
  std::vector<std::vector<TypeExpr>> take_types(std::size_t count);

  ast::Pattern pattern_;
  std::vector<std::pair<std::size_t, TypeExpr>> types_;  ///< by the place of its name
};

class RuleActions : Actions {
 public:
  using Actions::Actions;
  void variant();
  void over();
  void arrow();
  void end();

 private:
  ast::Rule rule_;
};

}  // namespace pw
