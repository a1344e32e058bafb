// Text forms: the statement form of graphs (.pwg), of op declarations, and of single expressions. Reading .pwg is dsl's.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace pw {

/// `graph name { in … statements … out … }`; reads back to the same graph, and prints the same bytes then.
std::string print_pwg(const Graph& graph);
/// `y, r = fused(x, w){eps = 1e-06}` of one node.
std::string print_node(const Graph& graph, NodeId node);
std::string print(const Expr& expr);
std::string print(const TypeExpr& type);
std::string print(const Statement& statement);
/// `op name(x: T[*b, d]) {eps: float = 1e-06} -> y: T[*b, d] traits`, without the body.
std::string print_signature(const Op& op, const Attributes& attributes);

/// A hash of structure (ops, attributes, types, wiring), not of names; equal for graphs equal up to names.
std::uint64_t structural_hash(const Graph& graph);

}  // namespace pw
