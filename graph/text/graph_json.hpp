// Reads and writes graph.json (format piecewise.graph/1).
#pragma once

#include <functional>
#include <string>

#include "base/progress.hpp"
#include "graph/graph.hpp"

namespace pw {

/// Parser of one op declaration of the "ops" list, supplied by the language layer, which owns the
/// grammar.
using OpParser = std::function<Result<Op>(Context&, std::string_view text)>;

/// Reads a graph. Diagnoses with JSON pointers: syntax, unknown op, arity, type, duplicate name,
/// use before definition, cycle, dangling output, number out of range, nesting over 64, size over
/// limits. `file` names the text in messages. `whole`: the graph must be able to run; otherwise it
/// is a list of nodes, whose writes and unknown ops are checked when the lists are joined.
Result<Graph> graph_from_json(const ContextPtr& context, std::string_view text,
                              const std::string& file, const OpParser& parse_op,
                              const StageProgress& progress = {}, bool whole = true);
std::string graph_to_json(const Graph& graph);

}  // namespace pw
