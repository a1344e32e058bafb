// Texts in boxes and tooltips: short lines for the picture, the complete text for the tooltip.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.hpp"
#include "graph/graph.hpp"

namespace pw::viz {

inline constexpr std::size_t kLineWidth =
    40;  ///< characters; Graphviz also refuses texts over 16 384 bytes

/// Shortens text to at most `width` characters (not bytes), with … in place of the middle.
std::string shorten(std::string_view text, std::size_t width = kLineWidth);
/// Replaces characters that are neither printable (base/printable.hpp) nor line feeds with a blank
/// or '?'.
std::string clean(std::string_view text);

/// Returns the op with its attributes, the results with their types, and the operands without boxes
/// (weights, literals).
std::vector<std::string> node_lines(const Graph& graph, NodeId n);
/// Returns `q, k = op(a, w){…}` with types, users, group, and source, one fact a line.
std::string node_tooltip(const Graph& graph, NodeId n);
/// Returns an operand as written: its name, a literal's value, or none.
std::string operand_text(const Graph& graph, ValueId v);

}  // namespace pw::viz
