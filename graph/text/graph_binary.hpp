// graph.pwb (format piecewise.graph.binary/2), both ways: a million nodes are read in a fraction of
// the time of graph.json. docs/formats.md has the layout.
#pragma once

#include "graph/text/graph_json.hpp"

namespace pw {

[[nodiscard]] bool looks_like_binary_graph(std::string_view bytes);
/// As graph_from_json, and as careful with what strangers wrote. PW1040: the file is damaged, cut
/// off, or of another version; PW1041: it contradicts itself.
Result<Graph> graph_from_binary(const ContextPtr& context, std::string_view bytes,
                                const std::string& file, const OpParser& parse_op,
                                const StageProgress& progress = {});
/// The same graph gives the same bytes.
std::string graph_to_binary(const Graph& graph);

}  // namespace pw
