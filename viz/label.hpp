// The words in and on a box: short lines for the picture, all of it for the tooltip.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace pw::viz {

inline constexpr std::size_t kLineWidth =
    40;  ///< characters; Graphviz also refuses texts over 16 384 bytes

/// At most `width` characters (not bytes), the middle replaced by … where it is longer.
std::string shorten(std::string_view text, std::size_t width = kLineWidth);
/// The number of characters of UTF-8 text.
std::size_t width_of(std::string_view text);
/// Harmless characters (base/printable.hpp) and line feeds; what is not is replaced by a blank or
/// '?'.
std::string clean(std::string_view text);

/// Op with its attributes, results with types, and the operands that are not drawn as boxes
/// (weights, literals).
std::vector<std::string> node_lines(const Graph& graph, NodeId n);
/// `q, k = op(a, w){…}` with types, users, group and source, one fact a line.
std::string node_tooltip(const Graph& graph, NodeId n);
/// An operand as it is written: its name, a literal's value, or none.
std::string operand_text(const Graph& graph, ValueId v);

}  // namespace pw::viz
