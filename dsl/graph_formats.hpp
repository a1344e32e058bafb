// Readable formats of graphs, distinguished by content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/dsl.hpp"
#include "graph/graph_format.hpp"

namespace pw {

/// Returns the formats of graph_formats.def: a function NAME_format() each.
[[nodiscard]] const std::vector<GraphFormat>& graph_formats();
/// Returns the format that recognises a file's bytes and holds tensors; null if none does.
[[nodiscard]] const GraphFormat* format_with_tensors(std::string_view bytes);
/// Returns the library's format that a path's extension names for writing; null if none does.
[[nodiscard]] const GraphFormat* format_to_write(std::string_view path);
/// Reads a text by the first format that recognises it, with the op library loaded. PW0481 for a
/// file known to be something else: an archive, an ONNX model.
Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const FxOptions& options);

}  // namespace pw
