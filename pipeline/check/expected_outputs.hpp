// Which tensors of a file of --expect are the outputs of a step.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "tensor/safetensors.hpp"

namespace pw {

struct ExpectedTensors {
  std::vector<const StoredTensor*> of_output;  ///< what is returned, then what is written
  bool by_place = false;                       ///< the file has other names
};

/// `hidden`, or `hidden@2` of the third of several steps.
[[nodiscard]] std::string stored_output(std::string_view output, std::size_t step,
                                        std::size_t steps);
/// By name: an output's own, that of its value, or of the input that the graph writes it to. Where
/// the file has none of these and as many tensors as there are outputs, by their order: that of the
/// numbers in their names, else of their bytes. PW1272 with the names that there are.
Result<ExpectedTensors> find_expected(const Graph& graph, const Safetensors& file, std::size_t step,
                                      std::size_t steps);

}  // namespace pw
