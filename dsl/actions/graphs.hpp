// Semantic actions for graphs and tests.
#pragma once

#include "dsl/actions/value_stacks.hpp"

namespace pw {

class GraphActions : Actions {
 public:
  using Actions::Actions;
  void open();
  void name();
  void symbol_name();
  void symbol_min();
  void symbol_max();
  void symbol_multiple();
  void symbol_tokens();
  void symbol_role();
  void input_kind();
  void input_name();
  void input_type();
  void no_input_type();
  void input_replicated();
  void end_inputs();
  void op();
  void node();
  void node_group();
  void node_source();
  void output();
  void written();
  void write();
  void end();

 private:
  ast::GraphItem graph_;
  std::string input_kind_;
};

class ExpectationActions : Actions {
 public:
  using Actions::Actions;
  void open();
  void none();
  void numeric();
  void error();
  void graph();
  void guard();
  void count_range();
  void because_code();
  void because_text();
  void end();

 private:
  ast::Expectation& push(ast::Expectation::Kind kind);

  std::size_t mark_ = 0;  ///< the height of the expectations before the current `expect`
  std::string because_code_, because_text_;
};

class TestActions : Actions {
 public:
  using Actions::Actions;
  void file();
  void graph();
  void apply();
  void with();
  void end();

 private:
  ast::Test test_;
};

}  // namespace pw
