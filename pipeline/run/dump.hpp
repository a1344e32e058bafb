// Everything that a run or a compilation went through, as files for people and programs to compare.
#pragma once

#include <optional>
#include <string>

#include "pipeline/log.hpp"
#include "pipeline/run/record.hpp"

namespace pw {

/// Writes into the folder: `passes/` (the graph before and after each pass, and the journal),
/// `stitch.pwg` and `pieces/`, `at_load.pwg` where something is computed of weights alone,
/// `kernels/` (CUDA sources with their row programs by piece class; in `captured/` those that the
/// backend cuda ran, in `cpu/` the C++ that the backend cpu compiled), `plan.json` and
/// `stats.json`. The same input gives the same bytes, but for what the compile cache counts.
Status write_dump(const RunRecord& record, const RuleSet& rules, const std::string& folder,
                  const Log& log);
/// The stitching graph, each piece, and what is computed once for all steps.
Status write_pieces(const StitchedGraph& pieces, const std::optional<Graph>& at_load,
                    const std::string& folder, const std::string& pieces_folder);
/// `at_load.pwg`, if there is such a graph.
Status write_at_load(const std::optional<Graph>& at_load, const std::string& folder);

/// The text of stats.json: counters, rules, the compile cache, what a device did, steps.
std::string stats_to_json(const RunRecord& record);

}  // namespace pw
