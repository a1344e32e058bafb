// How far a cost may be from the best: between it and a bound that nothing costs less than.
#pragma once

#include <string>

#include "pipeline/report/table.hpp"

namespace pw {

/// How much less than `cost` the best might be, as a part of it; 0 where it is the best.
[[nodiscard]] double gap_of(double cost, double bound);
/// The same as a cell: "0", or "0.42 %".
[[nodiscard]] Cell gap_cell(double cost, double bound);
/// "as", "at most 0.4 % above", or "above" where the bound is nothing: of the best.
[[nodiscard]] std::string above_text(double cost, double bound);

}  // namespace pw
