// Maps numbers of nodes to colors of their boxes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "viz/scene.hpp"

namespace pw::viz {

/// Returns union position and number, in order, of the nodes that the overlay has a number for.
std::vector<std::pair<std::uint32_t, double>> numbers_of(const UnionGraph& graph,
                                                         const Overlay& overlay);
/// Sets `shade` of the boxes for such nodes to the largest of their numbers, and adds a legend to
/// the caption.
void shade_boxes(Scene& scene, const UnionGraph& graph, const Overlay& overlay);

struct Shade {
  std::string fill, text;  ///< "#rrggbb"; the text is black or white for contrast
};
/// Maps 0 … 1 to blue … yellow, with monotonic luminance.
Shade shade_of(double share);

}  // namespace pw::viz
