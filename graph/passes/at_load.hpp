// What a graph computes of weights and numbers alone, once for all steps: Gemma's `w + 1`, a
// transposed weight.
#pragma once

#include <optional>

#include "graph/graph.hpp"

namespace pw {

/// Takes the nodes whose results are the same in every step out of the graph, which reads these
/// results as weights from then on. The graph that is returned computes them: its outputs have the
/// names of the new weights. None where there are no such nodes, or only ones that compute and move
/// nothing. What the graph returns stays in it, as does what depends on a size of the step, on what
/// another rank holds, or on a weight that is written.
[[nodiscard]] std::optional<Graph> take_constants(Graph& graph);

}  // namespace pw
