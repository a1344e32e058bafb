// Shows how a plan dispatches given steps, and why.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "pipeline/report/table.hpp"
#include "splitter/plan.hpp"

namespace pw {

/// Returns a row for each step, written as the new tokens of its sequences: `300`, `1,1,5`,
/// `64x1,5`. Fails with PW1402 for any other text.
Result<Table> dispatch_table(const Plan& plan, const std::vector<std::string>& steps,
                             std::int64_t loras = 0);

}  // namespace pw
