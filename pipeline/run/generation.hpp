// Generated steps of a run: they continue the sequences of its steps with the tokens that they
// choose.
#pragma once

#include "pipeline/run/execution.hpp"

namespace pw {

/// Fails with PW1471, or PW1402 for a number, if the request's generated steps cannot run, or not
/// several in a launch. `steps` are those before them.
Status check_generation(const ExecutionRequest& request, const Graph& graph,
                        const std::vector<PlannedStep>& steps);
/// Returns the steps, and the first of those that continue them, if there are any. Its size is the
/// largest: sequences only end.
[[nodiscard]] std::vector<PlannedStep> with_generated(const ExecutionRequest& request,
                                                      std::vector<PlannedStep> steps);
/// A sequence a row: its number, and the tokens.
[[nodiscard]] Table generated_table(const GeneratedTokens& generated);
[[nodiscard]] std::string generation_summary(const GeneratedTokens& generated);

}  // namespace pw
