// Lays out a scene without Graphviz: first the insides of clusters, then the whole.
#pragma once

#include <vector>

#include "viz/scene.hpp"

namespace pw::viz {

struct Place {  ///< in points, from the upper left corner
  double x = 0, y = 0, width = 0, height = 0;
};

struct ScenePlaces {
  std::vector<Place> boxes, clusters;  ///< an empty cluster has zero width
  /// Control polygons of cubic curves, by edge: alternating x and y of end points and control
  /// points.
  std::vector<std::vector<double>> edges;
  double width = 0, height = 0;
  /// Edges from far above or from another column, drawn as stubs at their targets.
  std::size_t stubs = 0;
  bool columns = false;  ///< split into columns because it was too tall
  bool folded = false;   ///< a rank was too wide and was folded
};

ScenePlaces place_scene(const Scene& scene);

}  // namespace pw::viz
