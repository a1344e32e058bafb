// Writes a scene as DOT text.
#pragma once

#include <string>

#include "viz/layered/scene_places.hpp"

namespace pw::viz {

/// Returns the DOT text. `id` attributes are b0, b1, … for boxes, e0, … for edges, and c0, … for
/// clusters, so that a page can find them. Without tooltips the picture is smaller, and put_titles
/// adds them to the SVG. With places, positions are fixed: Graphviz's `nop2` draws it without a
/// layout.
std::string to_dot(const Scene& scene, bool tooltips = true, const ScenePlaces* places = nullptr);
/// Returns a quoted DOT string that displays exactly this text; line feeds become line breaks.
std::string dot_string(std::string_view text);

}  // namespace pw::viz
