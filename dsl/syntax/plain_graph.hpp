// The fast way through large graphs as text. print_pwg writes statements of one form, and a program
// that prints a million of them repeats a few: the same op, types and attributes under other names.
#pragma once

#include <optional>

#include "graph/graph.hpp"

namespace pw {

/// The graph of a text in which each statement is a call whose operands are names. Nothing where
/// anything else is in it, or anything wrong: then the grammar reads it, and says what. What the
/// grammar would read of the text is the same graph.
std::optional<Graph> read_plain_graph(const ContextPtr& context, std::string_view text,
                                      SourceId source);

}  // namespace pw
