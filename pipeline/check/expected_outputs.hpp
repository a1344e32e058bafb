// Maps the tensors of a --expect file to the outputs of a step.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "tensor/safetensors.hpp"

namespace pw {

struct ExpectedTensors {
  std::vector<const StoredTensor*> of_output;  ///< returned outputs first, then written inputs
  bool by_place = false;                       ///< matched by position because names differ
};

/// Returns `hidden`, or `hidden@2` for the third of several steps.
[[nodiscard]] std::string stored_output(std::string_view output, std::size_t step,
                                        std::size_t steps);
/// Finds tensors by name: of the output, its value, or the input that it is written to. If no name
/// matches and the counts agree, uses the order of the numbers in the names, or of the bytes. Fails
/// with PW1272 and the available names.
Result<ExpectedTensors> find_expected(const Graph& graph, const Safetensors& file, std::size_t step,
                                      std::size_t steps);

}  // namespace pw
