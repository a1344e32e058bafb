// What `pwr run` and `pwr bench` have in common: the options that say what runs on what, and a
// graph that is ready to run steps.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/steps.hpp"
#include "cli/capturing.hpp"
#include "cli/planning.hpp"
#include "cli/running.hpp"
#include "cli/variants.hpp"

namespace pw::cli {

struct EngineArgs {
  GraphOptions graph;
  RuleOptions rules;
  PlanArgs plan;
  std::string planned;  ///< a plan.json, instead of what the options would plan
  std::string backend = "eager", driver = "cuda", grouping = "auto";
  std::string tokens;        ///< empty: 1,7,16,300, or the rows of a static graph
  std::string steps;         ///< a file; see backends/steps.hpp
  std::string weights, map;  ///< a safetensors file, and which tensor is which input
  std::uint64_t seed = 1;
  std::int64_t cached_tokens = 0;  ///< see cuda::RuntimeOptions
  bool strict = false;
  void add_to(CLI::App& app);
};

/// What an end of the program means: 5 where a capability is missing, 70 where a device has failed,
/// 3 where the input is at fault.
int exit_code_of(const Diagnostics& diagnostics);
template <class T>
T need_run(const Session& session, Result<T> result) {
  if (result) return std::move(*result);
  session.die(result.error(), exit_code_of(result.error()));
}

/// Of cuda it is eager, for what is compared with; see capturing.hpp.
std::unique_ptr<Backend> backend_named(const Session& session, const EngineArgs& args);
/// A step for each token count, or those of the file. Ends the program where one has fewer or more
/// tokens than the graph declares, or rows that a static graph does not have.
std::vector<PlannedStep> wanted_steps(const Session& session, const EngineArgs& args,
                                      const Graph& graph);
/// Gives inputs the tensors of the file, if one is named; says what was taken and what was not.
void give_weights(const Session& session, const EngineArgs& args, const Graph& graph,
                  Weights& weights);
/// Splits one of the graphs and plans it, or takes the plan that is given.
void prepare(const Session& session, const EngineArgs& args, const LoadedRules& rules,
             Variant& variant, RunRecord& record);
/// Ends with kUsage where a step has more tokens than the plan.
void check_sizes(const Session& session, const Plan& plan, const std::vector<PlannedStep>& steps);
/// Ends the program where a step has fewer or more tokens than the graph declares.
void check_declared(const Session& session, const Graph& graph,
                    const std::vector<PlannedStep>& steps);

/// A planned graph that runs steps. The session, the graph, the record and the backend must outlive
/// it.
class Engine {
 public:
  /// Compiles, captures and says what was done; `device` null: on the backend. The record gets the
  /// memory of a device, and what the backend reports.
  Engine(const Session& session, const EngineArgs& args, const Graph& graph, RunRecord& record,
         Backend& backend, Device* device, Weights& weights);
  /// On all ranks.
  Result<RankStepResult> run(const Step& step, std::span<Weights> weights,
                             const RunOptions& options);
  /// After the last step: says what went otherwise than planned; the record gets the counters of a
  /// device.
  void finish(RunRecord& record) const;

 private:
  const Session& session_;
  std::optional<Runner> runner_;
  std::unique_ptr<cuda::Runtime> captured_;
};

}  // namespace pw::cli
