// The third and fourth stage: a graph cut into pieces, and a plan made for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/variants.hpp"
#include "splitter/plan.hpp"

namespace pw {

/// What is asked of the splitter and the planner; what is left out is the rules' or a default.
struct PlanRequest {
  std::vector<std::string> at;  ///< ops to split at besides those of the rules
  bool fold = true;             ///< structurally equal pieces are one class
  bool split = true;            ///< false: the whole graph is one piece, and `at` is empty
  std::int64_t max_tokens = 8192, max_requests = 256;
  std::vector<std::int64_t> range_ends, capture_sizes, compile_sizes, loras;
  std::optional<std::int64_t> size_cap;  ///< of the default capture sizes
  std::int64_t speculative_tokens = 0, sequence_parallel = 1;
  std::string mode;  ///< see CaptureMode
};

Result<StitchedGraph> cut_graph(const Graph& graph, const LoadedRules& rules,
                                const PlanRequest& request);
/// The plan of a graph that is for all steps.
Result<Plan> plan_graph(const StitchedGraph& pieces, const Graph& graph, const LoadedRules& rules,
                        const PlanRequest& request, const Log& log);
/// That of one of several: sizes and ends outside of its range are other graphs'.
Result<Plan> plan_variant(const StitchedGraph& pieces, const GraphVariant& variant,
                          const LoadedRules& rules, const PlanRequest& request, const Log& log);

/// What split, plan, compile and tune start from.
struct SplitRequest {
  GraphSource graph;
  RuleSource rules;
  PlanRequest plan;
};
/// The graph, rewritten if a pipeline is named, without what is computed of weights alone, and cut.
struct CutGraph {
  LoadedRules rules;
  Graph graph;
  StitchedGraph pieces;
  std::optional<Graph> at_load;  ///< see take_constants()
};
Result<CutGraph> load_and_cut(const ContextPtr& context, const SplitRequest& request,
                              const Log& log);
/// The same of what is loaded already. `pipeline` empty: nothing is rewritten.
Result<CutGraph> rewrite_and_cut(Graph graph, LoadedRules rules, const std::string& pipeline,
                                 const PlanRequest& request, const Log& log);

[[nodiscard]] std::string split_summary(const StitchedGraph& pieces);
/// "2 tensors of weights alone, 3 nodes, computed once, at load".
[[nodiscard]] std::string at_load_summary(const Graph& at_load);
[[nodiscard]] std::string plan_summary(const Plan& plan);

}  // namespace pw
