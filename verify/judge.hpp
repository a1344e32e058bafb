// Compares what two graphs gave for one sample, element by element.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"
#include "tensor/tensor.hpp"
#include "verify/bounds.hpp"
#include "verify/samples/contents.hpp"
#include "verify/verdict.hpp"

namespace pw {

/// Of one rank, in the order of the graph's outputs.
struct SampleBounds {
  BoundedOutputs before, after;
};

/// One rank of one sample. Outputs in the graph's order, as run_whole gives them.
struct SampleRuns {
  Contents contents = Contents::ordinary;
  std::vector<std::pair<std::string, Tensor>> inputs;  ///< to show
  std::vector<Tensor> before, after;                   ///< in their dtypes
  std::vector<Tensor> exact_before, exact_after;       ///< of the reference, f64; may be empty
  /// Bounds of runs in the dtypes, or of the reference's runs. Null where there are none. Asked for
  /// only where outputs differ.
  std::function<const SampleBounds*(bool exact)> bounds;
};

/// A sample of finite numbers refutes where the outputs are further apart than the roundings of
/// both sides explain. Samples of NaN or infinity tell only what differs for these.
Judgement judge(const Graph& original, const SampleRuns& runs);

}  // namespace pw
