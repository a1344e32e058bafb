// Writes a scene's graph as a Markdown document, and escapes text for Markdown.
#pragma once

#include <string>
#include <string_view>

#include "viz/scene.hpp"

namespace pw::viz {

/// Returns the text on one line with all markup escaped; valid in table cells too.
std::string markdown_text(std::string_view text);
std::string to_markdown(const UnionGraph& graph, const Scene& scene);

}  // namespace pw::viz
