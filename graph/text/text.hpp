// Text forms: the statement form of graphs (.pwg), of op declarations, and of single expressions.
// Reading .pwg is dsl's.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace pw {

/// `graph name { in … statements … out … }`; reads back to the same graph, and prints the same
/// bytes then.
std::string print_pwg(const Graph& graph);
/// `y, r = fused(x, w){eps = 1e-06}` of one node.
std::string print_node(const Graph& graph, NodeId node);
/// With sources, real numbers are spelt as they were written: 1e-6, not 1e-06.
std::string print(const Expr& expr, const SourceMap* sources = nullptr);
std::string print(const TypeExpr& type, const SourceMap* sources = nullptr);
std::string print(const Statement& statement, const SourceMap* sources = nullptr);
/// `op name(x: T[*b, d]) {eps: float = 1e-06} -> y: T[*b, d] traits`, without the body.
std::string print_signature(const Op& op, const Attributes& attributes);
/// The same with the body, if it has one; its statements are separated by `separator`.
std::string print_declaration(const Op& op, const Attributes& attributes,
                              std::string_view separator);
/// ` replicated "tp:0"`, what follows the type of an input; empty without groups.
std::string print_replicated(const std::vector<std::string>& groups);

/// A name as the language reads it back: bare, or in backquotes when it is a reserved word or no
/// plain word.
std::string print_name(std::string_view name);
std::string print_word(
    std::string_view name);  ///< the same where reserved words may stand: attribute names
std::string print_path(
    std::string_view path);  ///< `aten.add.Tensor`; wholly quoted if a part is no word

/// A hash of structure (ops, attributes, types, wiring), not of names; equal for graphs equal up to
/// names.
std::uint64_t structural_hash(const Graph& graph);

}  // namespace pw
