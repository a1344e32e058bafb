// Declares the ops and symbols of a graph's text before its nodes. Shared by the two readers of a
// graph's text.
#pragma once

#include "dsl/syntax/ast.hpp"
#include "graph/build.hpp"

namespace pw {

struct GraphHeader {
  Graph graph;
  Env env;                ///< the symbols, and the ops that have another name here
  bool imported = false;  ///< the text declares an op unknown
  Diagnostics errors;
};
/// Declares the ops of the item, and the symbols of its lines and of all types in it.
GraphHeader build_header(const ContextPtr& context, const ast::GraphItem& item);

/// Parses a graph as parse_graph of dsl.hpp does, by the grammar alone.
Result<Graph> parse_graph(const ContextPtr& context, SourceId source);

}  // namespace pw
