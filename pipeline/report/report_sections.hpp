// The sections of a run's report, as data: the page shows them as tabs, the text report one after
// another.
#pragma once

#include "pipeline/run/record.hpp"
#include "viz/formats/report.hpp"

namespace pw {

/// Includes times only if the record requests them. `plan_too`: adds pieces, padding and memory,
/// which the page draws separately.
Report make_report(const RunRecord& record, const RuleSet& rules, bool plan_too);

}  // namespace pw
