// Time against the number of captured graphs, as a chart in SVG: one curve for each kind of
// traffic, told apart by colour and dash.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace pw {

struct FrontierCurve {
  using Point = std::pair<std::size_t, double>;  ///< graphs; percent above the least time
  std::string name;
  std::vector<Point> points;  ///< by graphs
  std::vector<Point> marks;   ///< what it is compared with: the default sizes
};

/// Both axes are logarithmic; points without graphs, and those below 0.01 %, stand at the rim.
std::string frontier_svg(const std::vector<FrontierCurve>& curves);

}  // namespace pw
