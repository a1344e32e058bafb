// Numbers for nodes, as colours of their boxes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "viz/scene.hpp"

namespace pw::viz {

/// Union position and number, in order, of the nodes that the overlay has one for.
std::vector<std::pair<std::uint32_t, double>> numbers_of(const UnionGraph& graph,
                                                         const Overlay& overlay);
/// Sets `shade` of the boxes that stand for such nodes, the largest of several, and says in the
/// caption what the shades mean.
void shade_boxes(Scene& scene, const UnionGraph& graph, const Overlay& overlay);

struct Shade {
  std::string fill, text;  ///< "#rrggbb"; the text is black or white, whichever stands out more
};
/// From 0 to 1: blue to yellow, which reads in grey as dark to light.
Shade shade_of(double share);

}  // namespace pw::viz
