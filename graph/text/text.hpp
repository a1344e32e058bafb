// Text forms: the statement form of graphs (.pwg), of op declarations, and of single expressions.
// The dsl folder reads .pwg.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace pw {

/// Prints `graph name { in … statements … out … }`; it reads back to the same graph, which prints
/// the same bytes.
std::string print_pwg(const Graph& graph);
/// Prints `y, r = fused(x, w){eps = 1e-06}` for one node.
std::string print_node(const Graph& graph, NodeId node);
/// Prints `symbol n in 1..256 tokens`.
std::string print_symbol(const std::string& name, const SymbolFact& fact);
/// Prints an expression. With sources, real numbers keep their original spelling: 1e-6, not 1e-06.
std::string print(const Expr& expr, const SourceMap* sources = nullptr);
std::string print(const TypeExpr& type, const SourceMap* sources = nullptr);
std::string print(const Statement& statement, const SourceMap* sources = nullptr);
/// Prints `op name(x: T[*b, d]) {eps: float = 1e-06} -> y: T[*b, d] traits`, without the body.
std::string print_signature(const Op& op, const Attributes& attributes);
/// Prints the declaration with its body, if present; `separator` separates its statements.
std::string print_declaration(const Op& op, const Attributes& attributes,
                              std::string_view separator);
/// Prints ` replicated "tp:0"`, which follows the type of an input; empty without groups.
std::string print_replicated(const std::vector<std::string>& groups);

/// Prints a name so that the language reads it back: bare, or in backquotes if it is reserved or
/// not a plain word.
std::string print_name(std::string_view name);
std::string print_word(
    std::string_view name);  ///< the same where reserved words are allowed: attribute names
std::string print_path(
    std::string_view path);  ///< `aten.add.Tensor`; wholly quoted if a part is not a word

/// Returns a hash of structure (ops, attributes, types, wiring) without names; equal for graphs
/// that are equal up to names.
std::uint64_t structural_hash(const Graph& graph);

}  // namespace pw
