// What running and measuring have in common: which steps of which graph run on what, and the stages
// up to a graph that is planned.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engines/step_engine.hpp"
#include "exec/steps.hpp"
#include "pipeline/plan.hpp"
#include "pipeline/run/record.hpp"

namespace pw {

struct PreparedRun;  // artifact.hpp

struct ExecutionRequest {
  GraphSource graph;
  RuleSource rules;
  PlanRequest plan;
  std::string planned;            ///< a plan.json, instead of what `plan` would give
  std::string backend = "eager";  ///< of `engines`
  EngineOptions engine;           ///< its seed is that of weights and inputs, too
  EngineList engines = builtin_engines();
  /// A step of each. Empty: 1, 7, 16 and 300, or the rows of a static graph.
  std::vector<std::int64_t> tokens;
  std::string steps;                    ///< instead: a file; see exec/steps.hpp
  std::string weights, map;             ///< a safetensors file, and which tensor is which input
  std::map<std::string, Tensor> given;  ///< contents of inputs, by name
  PieceHook* hook = nullptr;            ///< called before and after each piece of each step
  bool native = true;                   ///< false: compiled objects of an artifact are not run
  /// Of an artifact: graphs and plans that are there already.
  std::shared_ptr<const PreparedRun> prepared = {};
};

/// PW1207 or PW1404 where a step has fewer or more tokens than the graph declares, or rows that a
/// static graph does not have.
Result<std::vector<PlannedStep>> wanted_steps(const ExecutionRequest& request, const Graph& graph);
/// The same of steps that come from elsewhere.
Status check_steps(const Graph& graph, const std::vector<PlannedStep>& steps);
/// PW1408 where a step has more tokens than the plan.
Status check_sizes(const Plan& plan, const std::vector<PlannedStep>& steps);
/// Gives inputs of a rank the tensors of the request; says what was taken of a file and what was
/// not.
Status give_contents_of(const ExecutionRequest& request, const Graph& graph, Weights& weights,
                        const Log& log, std::int64_t rank = 0);
/// A path of a request for one rank: `{rank}` in it is the rank's number.
[[nodiscard]] std::string of_rank(std::string path, std::int64_t rank);
/// Cuts one of the graphs and plans it, or takes the plan that is given, into the record.
Status cut_and_plan(const ExecutionRequest& request, const LoadedRules& rules,
                    GraphVariant& variant, RunRecord& record, const Log& log);
/// Compiles and captures; says what was done, and keeps it in the record.
Result<std::unique_ptr<StepExecutable>> build_executable(StepEngine& engine, const Graph& graph,
                                                         RunRecord& record, Weights& weights,
                                                         const Log& log);
/// Computes what the record's graph has of weights alone, on all ranks of this process, and gives
/// it to the graph that reads it as weights.
Status compute_at_load(StepEngine& engine, const RunRecord& record, std::span<Weights> ranks,
                       Communicator* others, const Log& log);
/// After the last step: says what went otherwise than planned; the record gets the counters of a
/// device.
void finish_record(const StepExecutable& executable, RunRecord& record, const Log& log);

}  // namespace pw
