// The reference: runs a graph primitive by primitive with plain loops. In mode `exact` values are
// doubles and only casts to fp8 and integer types round; in mode `stated` every cast of the graph
// rounds to its dtype, unless that holds all values of the operand's; in mode `single` each
// primitive computes in f32 and rounds to its dtype, with reductions in the fixed order that
// generated code follows.
#pragma once

#include <span>
#include <vector>

#include "backends/backend.hpp"

namespace pw {

enum class Precision : std::uint8_t { exact, stated, single };

/// Runs a graph; outputs are f64 tensors, in the graph's order. Inputs are read in their storage
/// dtype, never converted whole.
Result<std::vector<Tensor>> interpret(const Graph& graph, std::span<const TensorView> inputs,
                                      const RunContext& context,
                                      Precision precision = Precision::exact);

/// The same on several ranks in step: inputs by rank, outputs by rank.
Result<std::vector<std::vector<Tensor>>> interpret_ranks(
    const Graph& graph, std::span<const std::vector<TensorView>> inputs, const RunContext& context,
    Precision precision = Precision::exact);

[[nodiscard]] std::unique_ptr<Backend> make_interpreter(Precision precision = Precision::exact);

}  // namespace pw
