// Rewrites a graph with a pipeline, with statistics, traces, and output files.
#pragma once

#include <string>
#include <vector>

#include "pipeline/run/record.hpp"
#include "pipeline/variants.hpp"

namespace pw {

struct OptimizeRequest {
  std::string pipeline;
  std::string trace;   ///< a folder for the graph after each pass and the journal; empty: none
  bool stats = false;  ///< count attempts and rejections, and warn of rules that never fired
  bool verify_each = false;  ///< check the graph's invariants after each pass
  bool naive = false;        ///< use the naive matcher, the oracle of the compiled one
  std::size_t most_rewrites = Limits{}.rewrites;
};

/// Returns the options that optimize() rewrites with, without statistics and progress.
[[nodiscard]] RewriteOptions rewrite_options(const OptimizeRequest& request);
/// Returns the graphs of all ranges; logs warnings, conditions, and the trace.
Result<std::vector<GraphVariant>> optimize(const Graph& graph, const LoadedRules& rules,
                                           const OptimizeRequest& request, const Log& log);

/// Fails with PW1426 if the path's extension names no graph format.
Status check_graph_path(const std::string& path);
/// Saves each graph to a separate file; see variant_path. Fails with PW1427 for several graphs on
/// standard output.
Status save_variants(const std::vector<GraphVariant>& variants, const std::string& path,
                     const Log& log);

/// Tables over all variants: passes, rules, and the choices of each `best of`.
[[nodiscard]] Table pass_table(const std::vector<GraphVariant>& variants);
[[nodiscard]] Table rule_table(const std::vector<GraphVariant>& variants);
[[nodiscard]] Table choice_table(const std::vector<GraphVariant>& variants);
/// Returns, for each `saturate`, its result, its stop reason, and its optimality gap.
[[nodiscard]] Table saturation_table(const std::vector<GraphVariant>& variants);

/// Returns the match program of each pass as text. Fails with PW1428 for an unknown pipeline.
Result<std::string> matcher_text(const Graph& graph, const LoadedRules& rules,
                                 const std::string& pipeline);

}  // namespace pw
