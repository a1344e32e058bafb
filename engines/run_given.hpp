// A graph run once on tensors that the caller has: symbols are read off their extents.
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

/// By input name.
using GivenInputs = std::map<std::string, Tensor, std::less<>>;

/// What the file that the graph was read from holds of its inputs, by their names.
[[nodiscard]] GivenInputs contents_of_inputs(const Graph& graph);

struct GivenOutputs {
  std::vector<Tensor> returned;  ///< in the graph's order
  /// What inputs hold afterwards, by their names, in the graph's order.
  std::vector<std::pair<std::string, Tensor>> written;
};

/// The values of all symbols that extents of the inputs give, beside those that are known already.
/// PW1203 where two inputs contradict each other.
Result<Symbols> symbols_of(const Graph& graph, const GivenInputs& inputs, Symbols known = {});
/// Inputs that nobody reads may be left out. PW1203 for an input that is read and not given, or
/// given in another dtype or with other extents; PW1202 for a symbol that no input fixes.
Result<GivenOutputs> run_given(const Graph& graph, Backend& backend, const GivenInputs& inputs,
                               Symbols symbols = {});
/// The same through a plan on a device: split, captured at this size where that is possible, and
/// run once.
Result<GivenOutputs> run_given(const Graph& graph, cuda::Driver& driver, const GivenInputs& inputs,
                               Symbols symbols = {});

}  // namespace pw
