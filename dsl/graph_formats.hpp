// Readable formats of graphs, distinguished by content.
#pragma once

#include <string>
#include <vector>

#include "dsl/dsl.hpp"
#include "graph/graph_format.hpp"

namespace pw {

/// Returns the formats of graph_formats.def: a function NAME_format() each.
[[nodiscard]] const std::vector<GraphFormat>& graph_formats();
/// Reads a text by the first format that recognises it, with the op library loaded. PW0481 for a
/// file known to be something else: an archive, an ONNX model.
Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const FxOptions& options);

}  // namespace pw
