// A graph compiled on a backend with its inputs filled, ready to be run again and again.
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
  [[nodiscard]] std::size_t bytes() const;  ///< of all inputs and outputs
  void run();                               ///< ends the program when the graph does not run
};

/// Run once already. Symbols that count tokens are `tokens`.
std::unique_ptr<Prepared> prepare(Backend& backend, const Graph& graph, std::int64_t tokens);

}  // namespace pw::bench
