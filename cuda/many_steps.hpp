// Continues sequences with the tokens that their steps choose.
#pragma once

#include "cuda/runtime.hpp"

namespace pw::cuda {

/// Runs a step, and continues its sequences (see generate) until a limit is reached or
/// StepLoop::cancel() is called. Steps of one token of each sequence run in one launch if a loop of
/// their size was captured; inputs that the graph does not write then stay as in the first of them.
/// The results are those of single steps.
Result<Generation> run_many(Runtime& runtime, const Step& step, Weights& weights,
                            const GenerationLimits& limits, const RunOptions& options = {});

}  // namespace pw::cuda
