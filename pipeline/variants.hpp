// The second stage: rewrites a graph with a pipeline, which makes one graph, or one for each token
// range and for the steps that do not satisfy its conditions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/passes/at_load.hpp"
#include "pipeline/load.hpp"
#include "rewriter/strategies/ranges.hpp"
#include "viz/viz.hpp"

namespace pw {

struct GraphVariant {
  std::string name;  ///< "1-256", "1-256.otherwise"; empty for the only graph of a pipeline
  RangedResult result;
  std::vector<Version> versions;  ///< with `keep`: one after each pass
  SymbolFact declared;            ///< token symbol before ranges and conditions narrowed it
  /// The weight-only computations, to be run once; see take_constants().
  std::optional<Graph> at_load = {};
};

/// Returns the strategy of this name. Fails with PW1101 for an unknown name, PW1407 for one that
/// creates a graph for each range.
Result<const Strategy*> one_graph_strategy(const LoadedRules& rules, const std::string& pipeline);

/// Runs the pipeline in place. Fails with PW1101 for an unknown name, PW1407 for one that creates a
/// graph for each range. Logs warnings except for idle rules and passes.
Result<RewriteReport> rewrite(Graph& graph, const LoadedRules& rules, const std::string& pipeline,
                              const RewriteOptions& options, const Log& log);

/// Returns the graph's facts about the token symbol.
[[nodiscard]] SymbolFact declared_tokens(const Graph& graph);
/// Supplies the options for each range.
using OptionsFor = std::function<RewriteOptions(const std::string& variant)>;
/// Returns the graphs of all ranges, without warnings and versions.
Result<std::vector<GraphVariant>> rewrite_ranges(const Graph& graph, const LoadedRules& rules,
                                                 const std::string& pipeline,
                                                 const OptionsFor& options);
/// Returns executable graphs, without their weight-only computations; logs warnings and conditions.
/// Returns the original graph if no pipeline is named.
Result<std::vector<GraphVariant>> make_variants(const Graph& graph, const LoadedRules& rules,
                                                const std::string& pipeline, const Log& log,
                                                bool keep = false,
                                                const AtLoadOptions& at_load = {});
/// Fails with PW1407 and `why` if there are several graphs.
Status need_one(const std::vector<GraphVariant>& variants, const std::string& why);

/// Returns the graph for a step; `runs_as` returns the size that a variant pads it to. Fails with
/// PW1408 if there is none.
Result<std::size_t> variant_of(const std::vector<GraphVariant>& variants, std::int64_t tokens,
                               const std::function<std::int64_t(std::size_t variant)>& runs_as);

/// Returns "out.1-256.json" for "out.json" and "1-256".
[[nodiscard]] std::string variant_path(const std::string& path, const std::string& variant);
/// Describes the steps that a conditional graph handles; `otherwise` names the graph for the rest.
[[nodiscard]] std::string conditions_line(const RangedResult& variant,
                                          const std::string& otherwise);
/// Reports rewriting progress to the log, which must outlive the options.
void tell_progress(RewriteOptions& options, const Log& log);
/// Returns the warnings of a run. `idle` includes unused rules and passes, except those of the
/// library.
[[nodiscard]] Diagnostics warnings_of(const RewriteReport& report, const SourceMap& sources,
                                      bool idle);

}  // namespace pw
