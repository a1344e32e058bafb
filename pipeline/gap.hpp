// Optimality gaps: the distance of a cost from a proved lower bound.
#pragma once

#include <string>

#include "pipeline/report/table.hpp"

namespace pw {

/// Returns the largest possible relative saving below `cost`; 0 if it is optimal.
[[nodiscard]] double gap_of(double cost, double bound);
/// Returns the gap as a cell: "0", or "0.42 %".
[[nodiscard]] Cell gap_cell(double cost, double bound);
/// Returns the phrase before "the best": "as", "at most 0.4 % above", or "above" if the bound is
/// zero.
[[nodiscard]] std::string above_text(double cost, double bound);

}  // namespace pw
