// The forms of graphs that can be read, told apart by their content.
#pragma once

#include <string>
#include <vector>

#include "dsl/dsl.hpp"
#include "graph/graph_format.hpp"

namespace pw {

/// As graph_formats.def lists them: a function NAME_format() each.
[[nodiscard]] const std::vector<GraphFormat>& graph_formats();
/// Reads a text by the first format that recognises it, the op library loaded. PW0481 for a file
/// that is known to be something else: an archive, an ONNX model.
Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const FxOptions& options);

}  // namespace pw
