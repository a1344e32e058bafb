// The main job: a model's graph rewritten, cut, planned, built and run, and its numbers checked.
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
  bool execute = true;     ///< else the stages up to the plan
  bool check = false;      ///< compare each output with the unrewritten graph's
  bool prove = false;      ///< each rewrite, by its rule or by itself
  bool pad = true;         ///< false: each step runs at its own size
  bool keep = false;       ///< outputs stay in the record
  std::int64_t ranks = 1;  ///< of this process, in step
  /// Instead: this process is one rank of several. In paths of the graph, of weights, outputs and
  /// what is expected `{rank}` is its number.
  std::shared_ptr<Communicator> others = {};
  Replication replication;
  std::string expect;       ///< a safetensors file of another system's outputs, to compare with
  Tolerance tolerance;      ///< of `expect`; unnamed: a yardstick decides, as of `check`
  std::string save;         ///< a safetensors file for the outputs; of several ranks with `{rank}`
  std::string command;      ///< for the record
  bool times = false;       ///< for the record
  bool hash_files = false;  ///< for the record: what was read, with its SHA-256
};

struct RunSummary {
  std::size_t steps = 0, failed = 0;  ///< failed: numbers apart by more than they may
};

/// Called with the record of each graph that the pipeline makes, when it is done.
using RunDone = std::function<Status(const RunRecord&, const LoadedRules&)>;

Result<RunSummary> run_model(const ContextPtr& context, const RunRequest& request, const Log& log,
                             const RunDone& done);

}  // namespace pw
