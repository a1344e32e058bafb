// The scene as DOT text.
#pragma once

#include <string>

#include "viz/layered/scene_places.hpp"

namespace pw::viz {

/// `id` attributes are b0, b1, … for boxes, e0, … for edges and c0, … for clusters, so that a page
/// can find them. With tooltips the text is complete; without, the picture is smaller and
/// put_titles gives them to its SVG.
/// With places, everything is where they say: Graphviz's `nop2` draws it without a layout.
std::string to_dot(const Scene& scene, bool tooltips = true, const ScenePlaces* places = nullptr);
/// A quoted DOT string that shows exactly this text; line feeds stay line breaks.
std::string dot_string(std::string_view text);

}  // namespace pw::viz
