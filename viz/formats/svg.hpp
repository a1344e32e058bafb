// What Graphviz's SVG lacks: titles that browsers show, and a form that stands inside a page.
#pragma once

#include <string>
#include <string_view>

#include "viz/scene.hpp"

namespace pw::viz {

/// Graphviz writes the DOT names b0, b0->b1 as <title>s; puts the scene's tooltips there.
std::string put_titles(std::string_view svg, const Scene& scene);
/// The <svg> element alone, without prolog; `fluid` drops its width and height, so that the page
/// sizes it.
std::string svg_element(std::string_view svg, bool fluid);
/// Text as the content of an element or attribute.
std::string xml_escaped(std::string_view text);

}  // namespace pw::viz
