// A graph rewritten by a pipeline with what is counted of it, traced and written.
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
  bool verify_each = false;  ///< the graph's invariants, after each pass
  bool naive = false;        ///< the matcher that is the oracle of the compiled one
  std::size_t most_rewrites = Limits{}.rewrites;
};

/// With which optimize() rewrites, without what is counted and told.
[[nodiscard]] RewriteOptions rewrite_options(const OptimizeRequest& request);
/// The graphs of all ranges; with warnings, conditions and what was traced said.
Result<std::vector<GraphVariant>> optimize(const Graph& graph, const LoadedRules& rules,
                                           const OptimizeRequest& request, const Log& log);

/// PW1426 where a path has no extension that says how a graph is written.
Status check_graph_path(const std::string& path);
/// Each into a file of its own, see variant_path. PW1427 for several and one standard output.
Status save_variants(const std::vector<GraphVariant>& variants, const std::string& path,
                     const Log& log);

/// Of all variants: passes, rules, and what each `best of` chose.
[[nodiscard]] Table pass_table(const std::vector<GraphVariant>& variants);
[[nodiscard]] Table rule_table(const std::vector<GraphVariant>& variants);
[[nodiscard]] Table choice_table(const std::vector<GraphVariant>& variants);
/// What each `saturate` found, what ended it, and how much better its graph could be.
[[nodiscard]] Table saturation_table(const std::vector<GraphVariant>& variants);

/// The instructions that each pass compiles to. PW1428 for an unknown pipeline.
Result<std::string> matcher_text(const Graph& graph, const LoadedRules& rules,
                                 const std::string& pipeline);

}  // namespace pw
