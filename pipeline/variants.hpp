// The second stage: a graph rewritten by a pipeline, which makes one graph, or one for each range
// of tokens and for the steps that do not meet its conditions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/load.hpp"
#include "rewriter/strategies/ranges.hpp"
#include "viz/viz.hpp"

namespace pw {

struct GraphVariant {
  std::string name;  ///< "1-256", "1-256.otherwise"; empty for the only graph of a pipeline
  RangedResult result;
  std::vector<Version> versions;  ///< with `keep`: after each pass
  SymbolFact declared;            ///< of the tokens, before ranges and conditions narrowed it
  /// What the graph has of weights alone, to be computed once; see take_constants().
  std::optional<Graph> at_load = {};
};

/// The strategy of that name, of one graph: PW1101 for an unknown name, PW1407 for one that makes a
/// graph for each range.
Result<const Strategy*> one_graph_strategy(const LoadedRules& rules, const std::string& pipeline);

/// Runs the pipeline in place. PW1101 for an unknown name, PW1407 for one that makes a graph for
/// each range. Warnings are said, but for rules and passes that did nothing.
Result<RewriteReport> rewrite(Graph& graph, const LoadedRules& rules, const std::string& pipeline,
                              const RewriteOptions& options, const Log& log);

/// What a graph says of its tokens' symbol.
[[nodiscard]] SymbolFact declared_tokens(const Graph& graph);
/// Asked for each range.
using OptionsFor = std::function<RewriteOptions(const std::string& variant)>;
/// The graphs of all ranges, without their warnings and versions.
Result<std::vector<GraphVariant>> rewrite_ranges(const Graph& graph, const LoadedRules& rules,
                                                 const std::string& pipeline,
                                                 const OptionsFor& options);
/// The same with warnings and conditions said, as graphs to run: what they compute of weights alone
/// is taken out of them. The graph as it is where no pipeline is named.
Result<std::vector<GraphVariant>> make_variants(const Graph& graph, const LoadedRules& rules,
                                                const std::string& pipeline, const Log& log,
                                                bool keep = false);
/// PW1407 where there are several: what takes one graph says why.
Status need_one(const std::vector<GraphVariant>& variants, const std::string& why);

/// The graph for a step; `runs_as` gives the size a variant pads it to. PW1408 if there is none.
Result<std::size_t> variant_of(const std::vector<GraphVariant>& variants, std::int64_t tokens,
                               const std::function<std::int64_t(std::size_t variant)>& runs_as);

/// "out.json" and "1-256" → "out.1-256.json".
[[nodiscard]] std::string variant_path(const std::string& path, const std::string& variant);
/// For which steps a graph with conditions is right; `otherwise` names the graph for the others.
[[nodiscard]] std::string conditions_line(const RangedResult& variant,
                                          const std::string& otherwise);
/// Tells the log what a rewrite does; the log outlives it.
void tell_progress(RewriteOptions& options, const Log& log);
/// What went wrong in a run; rules and passes that did nothing only if `idle` is wanted, and never
/// those of the library.
[[nodiscard]] Diagnostics warnings_of(const RewriteReport& report, const SourceMap& sources,
                                      bool idle);

}  // namespace pw
