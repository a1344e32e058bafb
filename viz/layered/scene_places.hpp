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
  /// Edges from far above, or from another column, of which only the end is drawn.
  std::size_t stubs = 0;
  bool columns = false;  ///< it would be much taller than wide, and stands in columns
  bool folded = false;   ///< a rank would be too wide, and is several
};

ScenePlaces place_scene(const Scene& scene);

}  // namespace pw::viz
