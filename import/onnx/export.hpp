// Writes a graph as an ONNX model.
#pragma once

#include "graph/graph_format.hpp"

namespace pw {

/// Exports a graph. Ops with a counterpart become it; other ops with a body become the ops of the
/// body; the rest become calls in the domain `piecewise` with their attributes. Weights whose
/// contents the graph holds become initialisers, others inputs. Symbols become parameters of dims,
/// and writes of the graph follow its outputs. PW0526: a dim that no input's shape gives, an
/// unknown type, or a model above 2 GiB, which protobuf cannot hold.
Result<WrittenGraph> export_onnx(const Graph& graph);

}  // namespace pw
