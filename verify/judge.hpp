// Compares the outputs of two graphs for one sample, element by element.
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

/// The bounds of one rank, in the order of the graph's outputs.
struct SampleBounds {
  BoundedOutputs before, after;
};

/// The runs of both graphs on one rank and sample. Outputs are in the order of run_whole.
struct SampleRuns {
  Contents contents = Contents::ordinary;
  std::vector<std::pair<std::string, Tensor>> inputs;  ///< for messages
  std::vector<Tensor> before, after;                   ///< in the declared dtypes
  std::vector<Tensor> exact_before, exact_after;       ///< reference outputs in f64; may be empty
  /// Computes bounds of the runs in the declared dtypes, or of the reference runs. Called only if
  /// outputs differ; null if unavailable.
  std::function<const SampleBounds*(bool exact)> bounds;
};

/// Judges one sample. Finite inputs refute if the outputs differ by more than the roundings of both
/// sides explain. Samples with NaN or infinity only determine for which special values the sides
/// differ.
Judgement judge(const Graph& original, const SampleRuns& runs);

}  // namespace pw
