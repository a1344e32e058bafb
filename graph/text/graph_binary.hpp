// Reads and writes graph.pwb (format piecewise.graph.binary/2). A million nodes are read in a
// fraction of the time of graph.json. docs/formats.md describes the layout.
#pragma once

#include "graph/text/graph_json.hpp"

namespace pw {

[[nodiscard]] bool looks_like_binary_graph(std::string_view bytes);
/// Reads a graph as graph_from_json does, with the same checks of untrusted input. PW1040: the file
/// is damaged, truncated, or of another version; PW1041: it contradicts itself.
Result<Graph> graph_from_binary(const ContextPtr& context, std::string_view bytes,
                                const std::string& file, const OpParser& parse_op,
                                const StageProgress& progress = {});
/// Returns the bytes of the graph; equal graphs give equal bytes.
std::string graph_to_binary(const Graph& graph);

}  // namespace pw
