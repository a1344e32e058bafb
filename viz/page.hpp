// The page around a picture: its fixed style and script, and the data as JSON that no text in it
// can break out of.
#pragma once

#include <string>
#include <string_view>

#include "viz/timeline.hpp"

namespace pw::viz {

/// `<`, `>`, `&` and the line separators of JavaScript are escaped, so that it may stand in a
/// <script> element.
std::string page_data_json(const VizInput& input, const UnionGraph& graph, const Scene& scene,
                           const Timeline& timeline);
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace pw::viz
