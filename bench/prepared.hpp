// A graph compiled on a backend with filled inputs, ready for repeated runs.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.hpp"
#include "tensor/tensor.hpp"

namespace pw::bench {

struct Prepared {
  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, outputs;
  std::vector<TensorView> in, out;
  RunContext context;
  Step step;
  [[nodiscard]] std::size_t bytes() const;  ///< total of inputs and outputs
  void run();                               ///< exits if the graph does not run
};

/// Prepares a graph and runs it once. Token-count symbols have the value `tokens`.
std::unique_ptr<Prepared> prepare(Backend& backend, const Graph& graph, std::int64_t tokens);

}  // namespace pw::bench
