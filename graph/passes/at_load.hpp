// Splits off the part of a graph that depends on weights and numbers alone and runs once for all
// steps: Gemma's `w + 1`, a transposed weight.
#pragma once

#include <optional>

#include "graph/graph.hpp"

namespace pw {

struct AtLoadOptions {
  /// Transpositions of matrices that only matrix products read, as their right operand, stay in the
  /// graph. Kernels that read weights as they are stored need them there.
  bool keep_transpositions = false;
};

/// Moves the nodes whose results are the same in every step into a new graph, and makes the given
/// graph read these results as weights. The outputs of the returned graph have the names of the new
/// weights. Returns nothing if there are no such nodes, or if they neither compute nor move
/// anything. Results of the graph itself stay in it. So do nodes that depend on a size of the step,
/// on another rank's data, or on a weight that is written.
[[nodiscard]] std::optional<Graph> take_constants(Graph& graph, const AtLoadOptions& options = {});

}  // namespace pw
