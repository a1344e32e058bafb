// The reference interpreter: runs a graph primitive by primitive with plain loops.
//
// exact    values are doubles; only casts to fp8 and integer types round
// stated   every cast rounds to its dtype, unless that holds all values of the operand's dtype
// single   each primitive computes in f32 and rounds to its dtype; reductions follow the fixed
// order of generated code
#pragma once

#include <span>
#include <vector>

#include "backends/backend.hpp"

namespace pw {

enum class Precision : std::uint8_t { exact, stated, single };

/// Runs a graph and returns its outputs as f64 tensors in the graph's order. Inputs are read in
/// their storage dtype and never converted as a whole.
Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const TensorView> inputs,
                                      const RunContext& context,
                                      Precision precision = Precision::exact);

/// Runs several ranks in step; inputs and outputs are indexed by rank.
Result<std::vector<std::vector<Tensor>>> interpret_ranks(
    const Graph& graph, std::span<const std::vector<TensorView>> inputs, const RunContext& context,
    Precision precision = Precision::exact);

[[nodiscard]] std::unique_ptr<Backend> make_interpreter(Precision precision = Precision::exact);

}  // namespace pw
