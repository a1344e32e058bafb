// Completes Graphviz's SVG: titles as tooltips, and a form that can be embedded in a page.
#pragma once

#include <string>
#include <string_view>

#include "viz/scene.hpp"

namespace pw::viz {

/// Replaces the <title>s b0, b0->b1 of Graphviz with the scene's tooltips.
std::string put_titles(std::string_view svg, const Scene& scene);
/// Returns the <svg> element without the prolog; `fluid` removes width and height, so that the page
/// sets them.
std::string svg_element(std::string_view svg, bool fluid);
/// Escapes text for an element or attribute.
std::string xml_escaped(std::string_view text);

}  // namespace pw::viz
