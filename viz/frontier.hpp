// SVG chart of step time against the number of captured graphs: one curve for each traffic,
// distinguished by color and dash.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace pw {

struct FrontierCurve {
  using Point = std::pair<std::size_t, double>;  ///< graphs; percent above the minimum time
  std::string name;
  std::vector<Point> points;  ///< by graphs
  std::vector<Point> marks;   ///< points of comparison: the default sizes
};

/// Returns the chart with two logarithmic axes. Points without graphs, and those below 0.01 %,
/// appear at the edge.
std::string frontier_svg(const std::vector<FrontierCurve>& curves);

}  // namespace pw
