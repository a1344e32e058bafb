// Writes a graph as an ONNX model.
#pragma once

#include "graph/graph_format.hpp"

namespace pw {

/// Ops with a counterpart become it, other ops with a body what the body calls, the rest calls of
/// the domain `piecewise` with their attributes. Weights whose contents the graph holds become
/// initialisers, others inputs; symbols become parameters of dims, and what a graph writes follows
/// its outputs. PW0526: a dim that the shapes of no input give, a type that is not known, or a
/// model above 2 GiB, which protobuf cannot hold.
Result<WrittenGraph> export_onnx(const Graph& graph);

}  // namespace pw
