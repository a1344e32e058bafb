// What is shown of plans beside their text.
#pragma once

#include "pipeline/report/table.hpp"
#include "splitter/counters.hpp"
#include "splitter/plan.hpp"

namespace pw {

/// What each capture will take, in bytes and graph nodes, and what is there in any case.
[[nodiscard]] Table memory_table(const Plan& plan);
[[nodiscard]] Table counter_table(const Counters& counters);

}  // namespace pw
