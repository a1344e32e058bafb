// The scene's graph as a Markdown document, and text that stays text in one.
#pragma once

#include <string>
#include <string_view>

#include "viz/scene.hpp"

namespace pw::viz {

/// One line, whatever the text holds; no character of it is markup, also in a cell of a table.
std::string markdown_text(std::string_view text);
std::string to_markdown(const UnionGraph& graph, const Scene& scene);

}  // namespace pw::viz
