#include "pipeline/gap.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {

double gap_of(double cost, double bound) {
  return cost > 0 ? std::max(cost - bound, 0.0) / cost : 0;
}

Cell gap_cell(double cost, double bound) {
  const double gap = gap_of(cost, bound);
  return real_cell(gap, gap == 0 ? "0" : fmt::format("{:.3g} %", 100 * gap));
}

std::string above_text(double cost, double bound) {
  if (bound >= cost) return "as";
  if (bound <= 0) return "above";
  return fmt::format("at most {:.3g} % above", 100 * (cost / bound - 1));
}

}  // namespace pw
