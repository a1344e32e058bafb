// Parts of the main job: the steps of one planned graph, and what a record says of files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/run/run.hpp"

namespace pw {

/// What --save writes: by path, the tensors of a file.
using SavedOutputs = std::map<std::string, std::map<std::string, Tensor>>;

/// Of the steps that a run is asked for.
struct RunSteps {
  std::size_t count = 0;  ///< of all graphs
  SavedOutputs saved = {};
};

/// Builds the executable and runs the steps, each compared as the request asks, into the record.
/// `original` is the graph before rewriting.
Status run_steps(const RunRequest& request, const Graph& original, const Graph& graph,
                 StepEngine& engine, const std::vector<PlannedStep>& steps, RunSteps& all,
                 RunRecord& record, const Log& log);
Status write_saved(const SavedOutputs& saved);

/// The files that the request names, and the rules that are built in as one; none unless wanted.
Result<std::vector<RunRecord::File>> read_files(const RunRequest& request, const LoadedRules& rules,
                                                const Context& context);

}  // namespace pw
