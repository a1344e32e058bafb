// The sections of a run's report, as data: what the page shows as tabs and the text below each
// other.
#pragma once

#include "pipeline/run/record.hpp"
#include "viz/formats/report.hpp"

namespace pw {

/// Times stand in it only where the record wants them. `plan_too`: pieces, padding and memory,
/// which the page draws by itself.
Report make_report(const RunRecord& record, const RuleSet& rules, bool plan_too);

}  // namespace pw
