// The scene's graph as a Markdown document.
#pragma once

#include <string>

#include "viz/scene.hpp"

namespace pw::viz {

std::string to_markdown(const UnionGraph& graph, const Scene& scene);

}  // namespace pw::viz
