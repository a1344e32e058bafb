// Common parts of running and benchmarking: the choice of steps, graph, and engine, and the stages
// up to a planned graph.
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
  /// The step sizes. Empty: 1, 7, 16, and 300, or the rows of a static graph.
  std::vector<std::int64_t> tokens;
  std::string steps;  ///< instead: a file; see exec/steps.hpp
  /// Steps that continue the sequences of `steps` with the tokens that they choose, until each has
  /// one of `ends`.
  std::int64_t generate = 0;
  std::vector<std::int64_t> ends = {};
  std::string weights, map;             ///< a safetensors file, and which tensor is which input
  std::map<std::string, Tensor> given;  ///< contents of inputs, by name
  PieceHook* hook = nullptr;            ///< called before and after each piece of each step
  bool native = true;                   ///< false: compiled objects of an artifact are not run
  /// Graphs and plans from an artifact.
  std::shared_ptr<const PreparedRun> prepared = {};
};

/// Returns the steps of a request. Fails with PW1207 or PW1404 if the number of tokens or rows does
/// not fit the graph.
Result<std::vector<PlannedStep>> wanted_steps(const ExecutionRequest& request, const Graph& graph);
/// Checks steps from another source in the same way.
Status check_steps(const Graph& graph, const std::vector<PlannedStep>& steps);
/// Fails with PW1408 if a step has more tokens than the plan.
Status check_sizes(const Plan& plan, const std::vector<PlannedStep>& steps);
/// Fails with PW1210 if a step has sizes that a condition of the imported program excludes.
Status check_conditions(const Graph& graph, const Plan& plan,
                        const std::vector<PlannedStep>& steps);
/// Sets inputs of a rank from the request's tensors; logs used and unused tensors of a file.
Status give_contents_of(const ExecutionRequest& request, const Graph& graph, Weights& weights,
                        const Log& log, std::int64_t rank = 0);
/// Replaces `{rank}` in a path with the rank's number.
[[nodiscard]] std::string of_rank(std::string path, std::int64_t rank);
/// Splits a graph and plans it, or uses the given plan; stores both in the record.
Status cut_and_plan(const ExecutionRequest& request, const LoadedRules& rules,
                    GraphVariant& variant, RunRecord& record, const Log& log);
/// Compiles and captures; logs the work and stores it in the record.
Result<std::unique_ptr<StepExecutable>> build_executable(StepEngine& engine, const Graph& graph,
                                                         RunRecord& record, Weights& weights,
                                                         const Log& log);
/// Runs the weight-only computations on all local ranks, and passes the results to the graph as
/// weights.
Status compute_at_load(StepEngine& engine, const RunRecord& record, std::span<Weights> ranks,
                       Communicator* others, const Log& log);
/// Logs deviations from the plan after the last step; stores device counters in the record.
void finish_record(const StepExecutable& executable, RunRecord& record, const Log& log);

}  // namespace pw
