// Everything that a run or a compilation went through, as files for people and programs to compare.
#pragma once

#include <string>

#include "cli/running.hpp"

namespace pw::cli {

/// Writes into the folder: `passes/` (the graph before and after each pass, and the journal),
/// `stitch.pwg` and `pieces/`, `kernels/` (CUDA sources with their row programs, and the C++ that
/// the backend cpu compiled), `plan.json` and `stats.json`. The same input gives the same bytes,
/// but for what the compile cache counts.
void write_dump(const Session& session, const RunRecord& record, const RuleSet& rules,
                const std::string& folder, bool group);

/// The text of stats.json: counters, rules, the compile cache, what a device did, steps.
std::string stats_to_json(const RunRecord& record);

}  // namespace pw::cli
