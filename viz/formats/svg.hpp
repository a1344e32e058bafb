// Completes Graphviz's SVG with tooltips.
#pragma once

#include <string>
#include <string_view>

#include "viz/scene.hpp"

namespace pw::viz {

/// Replaces the <title>s b0, b0->b1 of Graphviz with the scene's tooltips.
std::string put_titles(std::string_view svg, const Scene& scene);
/// Escapes text for an element or attribute.
std::string xml_escaped(std::string_view text);

}  // namespace pw::viz
