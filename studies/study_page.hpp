// The page of a study: for each graph the reachable states with the best path and the ends by two
// objectives; over all graphs the best orders and thefts.
#pragma once

#include <string>

#include "studies/study.hpp"

namespace pw {

/// Returns a self-contained HTML file; the same study gives the same bytes.
[[nodiscard]] std::string study_page(const StudySummary& summary, const std::string& title);

}  // namespace pw
