// A scene laid out in layers by this program: clusters inside, then the whole.
#pragma once

#include <vector>

#include "viz/scene.hpp"

namespace pw::viz {

struct Place {  ///< points, from the upper left corner
  double x = 0, y = 0, width = 0, height = 0;
};

struct ScenePlaces {
  std::vector<Place> boxes, clusters;  ///< a cluster without boxes has no width
  /// By edge: the ends and the control points between of cubic curves, x and y in turn.
  std::vector<std::vector<double>> edges;
  double width = 0, height = 0;
  std::size_t stubs = 0;  ///< edges from far above, of which only the end is drawn
};

ScenePlaces place_scene(const Scene& scene);

}  // namespace pw::viz
