// Parts of the main job: the steps of one planned graph, and the files of a record.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/run/run.hpp"

namespace pw {

/// The tensors that --save writes, by file path.
using SavedOutputs = std::map<std::string, std::map<std::string, Tensor>>;

/// Totals over a run's steps.
struct RunSteps {
  std::size_t count = 0;  ///< of all graphs
  SavedOutputs saved = {};
};

/// Builds the executable, runs the steps into the record, and compares each as requested.
/// `original` is the graph before rewriting.
Status run_steps(const RunRequest& request, const Graph& original, const Graph& graph,
                 StepEngine& engine, const std::vector<PlannedStep>& steps, RunSteps& all,
                 RunRecord& record, const Log& log);
Status write_saved(const SavedOutputs& saved);

/// Returns the files of the request, with the built-in rules as one; empty unless requested.
Result<std::vector<RunRecord::File>> read_files(const RunRequest& request, const LoadedRules& rules,
                                                const Context& context);

}  // namespace pw
