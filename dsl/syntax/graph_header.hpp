// What a graph's text says before its nodes: its ops and symbols, declared. Shared by the two ways
// in which a graph's text is read.
#pragma once

#include "dsl/syntax/ast.hpp"
#include "graph/build.hpp"

namespace pw {

struct GraphHeader {
  Graph graph;
  Env env;                ///< the symbols, and the ops that are known by another name here
  bool imported = false;  ///< the text calls an op unknown
  Diagnostics errors;
};
/// Declares the ops of the item, and the symbols of its lines and of all types in it.
GraphHeader build_header(const ContextPtr& context, const ast::GraphItem& item);

/// As parse_graph of dsl.hpp, by the grammar alone.
Result<Graph> parse_graph(const ContextPtr& context, SourceId source);

}  // namespace pw
