// Tables about plans.
#pragma once

#include "pipeline/report/table.hpp"
#include "splitter/counters.hpp"
#include "splitter/plan.hpp"

namespace pw {

/// Returns the predicted bytes and graph nodes of each capture, and the fixed memory.
[[nodiscard]] Table memory_table(const Plan& plan);
[[nodiscard]] Table counter_table(const Counters& counters);

}  // namespace pw
