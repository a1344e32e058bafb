// Ties: decisions of a graph whose operands differ by less than the rounding error, so that two
// correct runs may decide differently. Comparisons, step functions, rounding casts, topk, argmax,
// argmin, and sort are decisions.
//
// A rewritten run that the reference does not confirm is compared with perturbed reference runs. In
// these, only the operands of such decisions move, by at most the rounding error. The run passes if
// one of them confirms it. Only its different tie decisions are excused: any other error, even
// downstream of a tie, remains equally large.
#pragma once

#include "verify/numeric.hpp"

namespace pw {

/// The context of a checked run: the graph before rewriting, and its step.
struct CheckedRun {
  const Graph& original;
  std::span<Weights> ranks;
  const Step& step;
  Symbols symbols = {};
  CheckCaches* caches = nullptr;  ///< state at the time of the yardstick run
};

/// Returns one report for each rank, as check_outputs does; searches for ties before it reports a
/// failure.
Result<std::vector<NumericReport>> check_but_for_ties(const CheckedRun& run,
                                                      const Yardstick& yardstick,
                                                      const RankOutputs& after,
                                                      const NumericLimits& limits = {});

}  // namespace pw
