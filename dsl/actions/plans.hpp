// Semantic actions for strategies and for the items that use them: pass, pipeline, split, capture
// and explore.
#pragma once

#include "dsl/actions/value_stacks.hpp"

namespace pw {

class StrategyActions : Actions {
 public:
  using Actions::Actions;
  void close_simple();
  void close_best();
  void end_sequence();
  void close_sequence();
  void end_prefixes();
  void reference();
  void fuel();
  void nodes();
  void rounds();
  void when();
  void ensures();
  void by();
  void cost();

 private:
  ast::Strategy& extended();
};

class PassActions : Actions {
 public:
  using Actions::Actions;
  void end();
};

class PipelineActions : Actions {
 public:
  using Actions::Actions;
  void symbol();
  void range();
  void end();

 private:
  ast::Pipeline pipeline_;
};

class SplitActions : Actions {
 public:
  using Actions::Actions;
  void at();
  void end_at();
  void end();

 private:
  ast::Split split_;
};

class CaptureActions : Actions {
 public:
  using Actions::Actions;
  void size_first();
  void size_last();
  void size_step();
  void mode();
  void end();

 private:
  ast::Capture capture_;
};

class ExploreActions : Actions {
 public:
  using Actions::Actions;
  void first();
  void last();
  void end_clause();
  void end();

 private:
  ast::Explore explore_;
  std::vector<std::pair<std::int64_t, std::int64_t>> numbers_;  ///< of the current clause
};

}  // namespace pw
