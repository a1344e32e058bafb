// Runs a whole graph on a caller's engine that observes or changes the operands of some nodes.
#pragma once

#include <span>

#include "backends/program.hpp"
#include "exec/runner.hpp"

namespace pw {

/// Returns the outputs as f64 tensors, by rank. `engine.special` selects the nodes that the caller
/// runs.
Result<RankOutputs> run_observed(const Graph& graph, const Engine& engine, std::span<Weights> ranks,
                                 const Step& step, const Symbols& symbols = {});

}  // namespace pw
