// Reads names off the tokens of strategies, deployment items, spaces of pipelines and tests.
#pragma once

#include "dsl/editing/code_reader.hpp"

namespace pw {

class PlanReader {
 public:
  PlanReader(ItemMentions& item, CodeReader& code) : item_(item), code_(code) {}

  /// Reads `r`, `noop.*`, `noop.slice_full` or `family[row]`; returns the token after it.
  std::size_t reference(std::size_t i);
  void strategy(std::size_t i);
  void pipeline(std::size_t i);
  void split(std::size_t i);
  void explore(std::size_t i);
  void test(std::size_t i);

 private:
  static bool is_strategy_word(Tok t);
  /// Returns true if the word at `i` belongs to a strategy and is not a rule's name, by what
  /// follows.
  [[nodiscard]] bool strategy_word(std::size_t i) const;
  /// Reads an expression over params and counts; returns the token after it.
  std::size_t guard(std::size_t i);
  /// Returns true if a clause of `explore` begins here, and not a name of a list, by the preceding
  /// token.
  [[nodiscard]] bool explore_clause(std::size_t i) const;
  /// Reads the values after `with tp in`.
  std::size_t explore_values(std::size_t i);
  std::size_t apply(std::size_t i);
  std::size_t expect(std::size_t i);
  /// Reads `r == 2*80`, `count(add) == 0` or `r == 1 in 1..256`: names are rules, in `count` ops.
  std::size_t count(std::size_t i);
  std::size_t because(std::size_t i);

  ItemMentions& item_;
  CodeReader& code_;
};

}  // namespace pw
