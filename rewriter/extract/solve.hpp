// DAG extraction: the cheapest choice found within a number of steps, and a bound on how much
// cheaper another could be. Deterministic on any machine.
#pragma once

#include "rewriter/extract/problem.hpp"

namespace pw::extract {

struct Limits {
  std::uint64_t steps = 20'000'000;  ///< of branch and bound; about 10 million a second
  std::size_t price_rounds = 150;    ///< of the bound of each part
};

struct Answer {
  Choice choice;
  std::vector<ClassIndex> needed;  ///< children first
  double cost = 0;
  double bound = 0;            ///< no choice costs less
  bool exact = false;          ///< the bound is the cost
  std::size_t parts = 0;       ///< independent parts
  std::size_t like_parts = 0;  ///< of these, equal to one that was solved already
};

/// Solves a problem; never worse than any of the choices in `known`. Nothing if a root cannot be
/// derived.
std::optional<Answer> solve(const Problem& problem, const std::vector<Choice>& known = {},
                            const Limits& limits = {});

}  // namespace pw::extract
