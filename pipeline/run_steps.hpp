// Parts of the main job: the steps of one planned graph, and what a record says of files.
#pragma once

#include <vector>

#include "pipeline/run.hpp"

namespace pw {

/// Builds the executable and runs the steps, each compared as the request asks, into the record.
/// `original` is the graph before rewriting.
Result<std::monostate> run_steps(const RunRequest& request, const Graph& original,
                                 const Graph& graph, StepEngine& engine,
                                 const std::vector<PlannedStep>& steps, RunRecord& record,
                                 const Log& log);

/// The files that the request names, and the rules that are built in as one; none unless wanted.
Result<std::vector<RunRecord::File>> read_files(const RunRequest& request, const LoadedRules& rules,
                                                const Context& context);

}  // namespace pw
