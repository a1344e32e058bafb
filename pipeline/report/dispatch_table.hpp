// What steps of given sequences get of a plan, and why.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "pipeline/report/table.hpp"
#include "splitter/plan.hpp"

namespace pw {

/// A row for each step, written as the new tokens of its sequences: `300`, `1,1,5`, `64x1,5`.
/// PW1402 where one is not.
Result<Table> dispatch_table(const Plan& plan, const std::vector<std::string>& steps,
                             std::int64_t loras = 0);

}  // namespace pw
