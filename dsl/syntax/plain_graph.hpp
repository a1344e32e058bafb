// Fast reader for large graphs as text. print_pwg writes statements of one form, and a program that
// prints a million of them repeats a few: the same op, types and attributes with other names.
#pragma once

#include <optional>

#include "graph/graph.hpp"

namespace pw {

/// Reads a graph in which each statement is a call whose operands are names. Returns nothing for
/// any other text, or on any error; the grammar then reads it, and reports errors. The result
/// equals what the grammar would read.
std::optional<Graph> read_plain_graph(const ContextPtr& context, std::string_view text,
                                      SourceId source);

}  // namespace pw
