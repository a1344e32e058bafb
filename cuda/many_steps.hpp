// Continues sequences with the tokens that their steps choose.
#pragma once

#include <vector>

#include "cuda/runtime.hpp"

namespace pw::cuda {

/// Tokens of several steps.
struct ManySteps {
  std::vector<std::vector<std::int64_t>> tokens;  ///< by sequence; the last one may be an end token
  std::int64_t steps = 0;
  Step next;  ///< of the sequences that have not ended, one new token each
};

/// Runs a step, and continues its sequences with the tokens of the graph's first output, until a
/// limit is reached or StepLoop::cancel() is called. Steps of one token of each sequence run in one
/// launch if a loop of their size was captured; inputs that the graph does not write then stay as
/// in the first of them. The results are those of single steps.
Result<ManySteps> run_many(Runtime& runtime, const Step& step, Weights& weights,
                           const LoopLimits& limits, const RunOptions& options = {});

}  // namespace pw::cuda
