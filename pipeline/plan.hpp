// Stages 3 and 4: splits a graph into pieces, and plans them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/variants.hpp"
#include "splitter/plan.hpp"

namespace pw {

/// Options of the splitter and the planner; unset ones come from the rules or a default.
struct PlanRequest {
  std::vector<std::string> at;  ///< additional splitting ops
  bool fold = true;             ///< merge structurally equal pieces into one class
  bool split = true;            ///< false: the whole graph is one piece, and `at` is empty
  std::int64_t max_tokens = 8192, max_requests = 256;
  std::vector<std::int64_t> range_ends, capture_sizes, compile_sizes, loras;
  std::optional<std::int64_t> size_cap;  ///< limit of the default capture sizes
  std::int64_t speculative_tokens = 0, sequence_parallel = 1;
  std::string mode;  ///< see CaptureMode
};

Result<StitchedGraph> cut_graph(const Graph& graph, const LoadedRules& rules,
                                const PlanRequest& request);
/// Plans a graph that serves all steps.
Result<Plan> plan_graph(const StitchedGraph& pieces, const Graph& graph, const LoadedRules& rules,
                        const PlanRequest& request, const Log& log);
/// Plans one of several graphs; excludes sizes and end points outside its range.
Result<Plan> plan_variant(const StitchedGraph& pieces, const GraphVariant& variant,
                          const LoadedRules& rules, const PlanRequest& request, const Log& log);

/// The common input of split, plan, compile, and tune.
struct SplitRequest {
  GraphSource graph;
  RuleSource rules;
  PlanRequest plan;
};
/// A split graph, rewritten if a pipeline is named, without its weight-only computations.
struct CutGraph {
  LoadedRules rules;
  Graph graph;
  StitchedGraph pieces;
  std::optional<Graph> at_load;  ///< see take_constants()
};
Result<CutGraph> load_and_cut(const ContextPtr& context, const SplitRequest& request,
                              const Log& log);
/// Rewrites and splits a graph that is already loaded. An empty `pipeline` rewrites nothing.
Result<CutGraph> rewrite_and_cut(Graph graph, LoadedRules rules, const std::string& pipeline,
                                 const PlanRequest& request, const Log& log);

[[nodiscard]] std::string split_summary(const StitchedGraph& pieces);
/// Returns a summary: "2 tensors computed once at load, from weights only (3 nodes)".
[[nodiscard]] std::string at_load_summary(const Graph& at_load);
[[nodiscard]] std::string plan_summary(const Plan& plan);

}  // namespace pw
