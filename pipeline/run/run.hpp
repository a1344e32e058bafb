// The main job: rewrites, splits, plans, builds and runs a model's graph, and checks its numbers.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/communicator.hpp"
#include "pipeline/run/execution.hpp"

namespace pw {

struct RunRequest : ExecutionRequest {
  bool execute = true;     ///< otherwise only the stages up to the plan
  bool check = false;      ///< compare each output with that of the unrewritten graph
  bool prove = false;      ///< each rewrite, by its rule or individually
  bool pad = true;         ///< false: each step runs at its own size
  bool keep = false;       ///< keep outputs in the record
  std::int64_t ranks = 1;  ///< in this process, in lockstep
  /// Alternative: this process is one rank of several. In paths of the graph, weights, outputs and
  /// expected outputs, `{rank}` is its number.
  std::shared_ptr<Communicator> others = {};
  Replication replication;
  std::string expect;       ///< a safetensors file of another system's outputs, to compare with
  Tolerance tolerance;      ///< for `expect`; if unset, the yardstick of `check` decides
  std::string save;         ///< a safetensors file for the outputs; for several ranks with `{rank}`
  std::string command;      ///< for the record
  bool times = false;       ///< for the record
  bool hash_files = false;  ///< for the record: files that were read, with SHA-256
};

struct RunSummary {
  std::size_t steps = 0, failed = 0;  ///< failed: numbers that exceed the tolerance
};

/// Called with the record of each graph of the pipeline, when it is complete.
using RunDone = std::function<Status(RunRecord&, const LoadedRules&)>;

Result<RunSummary> run_model(const ContextPtr& context, const RunRequest& request, const Log& log,
                             const RunDone& done);

}  // namespace pw
