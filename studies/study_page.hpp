// The page of a study: for each graph the states that orders come to with the best path, the ends
// by two objectives, and over all graphs the best orders and who takes whose nodes.
#pragma once

#include <string>

#include "studies/study.hpp"

namespace pw {

/// One HTML file that needs nothing else; the same study gives the same bytes.
[[nodiscard]] std::string study_page(const StudySummary& summary, const std::string& title);

}  // namespace pw
