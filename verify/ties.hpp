// Ties: decisions of a graph whose operands are less apart than rounding, so that two right runs
// may settle them in different ways. A comparison, a step function, a cast that rounds, topk,
// argmax, argmin and sort decide.
//
// A rewritten run that the reference does not confirm is compared with other runs of the reference:
// those in which the operands of such decisions, and of nothing else, are moved by no more than
// rounding. It passes where one of them confirms it. So what it settles in another way is excused,
// and nothing else: an error, also of what follows from a tie, is as far from that run as from the
// first.
#pragma once

#include "verify/numeric.hpp"

namespace pw {

/// What a run that is checked ran on: the graph before rewriting, and its step.
struct CheckedRun {
  const Graph& original;
  std::span<Weights> ranks;
  const Step& step;
  Symbols symbols = {};
  CheckCaches* caches = nullptr;  ///< as they were for the yardstick
};

/// A report a rank, as check_outputs gives it; where one fails, ties are looked for first.
Result<std::vector<NumericReport>> check_but_for_ties(const CheckedRun& run,
                                                      const Yardstick& yardstick,
                                                      const RankOutputs& after,
                                                      const NumericLimits& limits = {});

}  // namespace pw
