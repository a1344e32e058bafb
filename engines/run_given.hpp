// Runs a graph once on a caller's tensors; symbols are derived from their extents.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.hpp"
#include "backends/kernel.hpp"

namespace pw {

namespace cuda {
class Driver;
}

/// Tensors by input name.
using GivenInputs = std::map<std::string, Tensor, std::less<>>;

/// Returns the input contents stored in the file that the graph was read from, by input name.
[[nodiscard]] GivenInputs contents_of_inputs(const Graph& graph);

struct GivenOutputs {
  std::vector<Tensor> returned;  ///< in the graph's order
  /// Contents of written inputs after the run, by name, in the graph's order.
  std::vector<std::pair<std::string, Tensor>> written;
};

/// Returns the values of all symbols that the inputs' extents determine, in addition to the known
/// ones. Fails with PW1203 if two inputs contradict each other.
Result<Symbols> symbols_of(const Graph& graph, const GivenInputs& inputs, Symbols known = {});
/// Runs the graph. Unused inputs may be omitted. Fails with PW1203 if a used input is missing or
/// has another dtype or other extents, and with PW1202 if no input determines a symbol.
Result<GivenOutputs> run_given(const Graph& graph, Backend& backend, const GivenInputs& inputs,
                               Symbols symbols = {});
/// Runs the graph once through a plan on a device: split, captured at this size if possible.
Result<GivenOutputs> run_given(const Graph& graph, cuda::Driver& driver, const GivenInputs& inputs,
                               Symbols symbols = {});

}  // namespace pw
