// Generation: continues sequences with the tokens that their steps choose.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "exec/steps.hpp"
#include "exec/weights.hpp"

namespace pw {

struct GenerationLimits {
  std::int64_t steps = 1;          ///< at most
  std::vector<std::int64_t> ends;  ///< a sequence ends with one of these tokens
};

/// Tokens that one step chose, or several in one launch.
struct ChosenTokens {
  std::int64_t steps = 0;
  std::vector<std::vector<std::int64_t>> chosen;  ///< by sequence of the first step
};

/// Tokens of several steps.
struct Generation {
  std::vector<std::vector<std::int64_t>> tokens;  ///< by sequence; the last one may be an end token
  std::int64_t steps = 0;
  std::int64_t launches = 0;  ///< calls of RunSome, each of which ran one step or several
  Step next;                  ///< of the sequences that have not ended, one new token each
};

/// Runs a step, and at most as many more as the limits allow, which continue its sequences. No
/// steps: generation ends.
using RunSome = std::function<Result<ChosenTokens>(const Step&, const GenerationLimits&)>;

/// Fails with PW1471 if the first output is not a token for each row, or the graph does not write
/// its next inputs.
Status check_generates(const Graph& graph);
/// Runs a step, and continues its sequences with the tokens of the graph's first output, until a
/// limit is reached.
Result<Generation> generate(const Graph& graph, const Step& step, const GenerationLimits& limits,
                            const RunSome& run_some);
/// Returns the token of each sequence's last row; stores what the step wrote for the next one.
ChosenTokens take_chosen(const Graph& graph, const Step& step, Weights& weights,
                         const std::vector<Tensor>& outputs);
/// Returns a step of one new token of each sequence that `steps` begin and do not end.
[[nodiscard]] Step continuation(const std::vector<PlannedStep>& steps);

}  // namespace pw
