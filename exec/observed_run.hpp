// A run of a whole graph on an engine of the caller's: one that looks at the operands of some
// nodes, or changes them.
#pragma once

#include <span>

#include "backends/program.hpp"
#include "exec/runner.hpp"

namespace pw {

/// Outputs are f64 tensors, by rank. `engine.special` names the nodes that the caller runs.
Result<RankOutputs> run_observed(const Graph& graph, const Engine& engine, std::span<Weights> ranks,
                                 const Step& step, const Symbols& symbols = {});

}  // namespace pw
