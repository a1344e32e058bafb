// The scene as DOT text.
#pragma once

#include <string>

#include "viz/scene.hpp"

namespace pw::viz {

/// `id` attributes are b0, b1, … for boxes, e0, … for edges and c0, … for clusters, so that a page can find them.
std::string to_dot(const Scene& scene);
/// A quoted DOT string that shows exactly this text; line feeds stay line breaks.
std::string dot_string(std::string_view text);

}  // namespace pw::viz
