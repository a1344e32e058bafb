// Prints a scene's graph as indented text for a terminal.
#pragma once

#include <string>

#include "viz/scene.hpp"

namespace pw::viz {

std::string to_outline(const UnionGraph& graph, const Scene& scene, bool color);

}  // namespace pw::viz
