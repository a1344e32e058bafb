// Everything that a run or a compilation went through, as files for people and programs to compare.
#pragma once

#include <string>

#include "pipeline/log.hpp"
#include "pipeline/record.hpp"

namespace pw {

/// Writes into the folder: `passes/` (the graph before and after each pass, and the journal),
/// `stitch.pwg` and `pieces/`, `kernels/` (CUDA sources with their row programs by piece class; in
/// `captured/` those that the backend cuda ran, in `cpu/` the C++ that the backend cpu compiled),
/// `plan.json` and `stats.json`. The same input gives the same bytes,
/// but for what the compile cache counts.
Result<std::monostate> write_dump(const RunRecord& record, const RuleSet& rules,
                                  const std::string& folder, const Log& log);
/// The stitching graph and each piece.
Result<std::monostate> write_pieces(const StitchedGraph& pieces, const std::string& folder,
                                    const std::string& pieces_folder);

/// The text of stats.json: counters, rules, the compile cache, what a device did, steps.
std::string stats_to_json(const RunRecord& record);

}  // namespace pw
