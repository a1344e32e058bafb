// Writes all stages of a run or a compilation as files that can be compared.
#pragma once

#include <optional>
#include <string>

#include "pipeline/log.hpp"
#include "pipeline/run/record.hpp"

namespace pw {

/// Writes into the folder: `passes/` (the graph before and after each pass, and the journal),
/// `stitch.pwg` and `pieces/`, `at_load.pwg` if there are weight-only computations, `kernels/`
/// (CUDA sources with their row programs by piece class; in `captured/` those that the backend cuda
/// ran, in `cpu/` the C++ that the backend cpu compiled), `plan.json` and `stats.json`. The same
/// input gives the same bytes, except for counters of the compile cache.
Status write_dump(const RunRecord& record, const RuleSet& rules, const std::string& folder,
                  const Log& log);
/// Writes the stitching graph, each piece, and the weight-only computations.
Status write_pieces(const StitchedGraph& pieces, const std::optional<Graph>& at_load,
                    const std::string& folder, const std::string& pieces_folder);
/// Writes `at_load.pwg`, if there is such a graph.
Status write_at_load(const std::optional<Graph>& at_load, const std::string& folder);

/// Returns the text of stats.json: counters, rules, the compile cache, device counters, steps.
std::string stats_to_json(const RunRecord& record);

}  // namespace pw
