// Runs a resolved strategy on a graph in place, whatever ranges it states: the shared part of
// run_pipeline and run_ranges.
#pragma once

#include "rewriter/engine/watch.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

Result<RewriteReport> run_strategy(Graph& graph, RunRules& rules, const Strategy& strategy,
                                   const Env& params, const RewriteOptions& options,
                                   RunWatch* watch = nullptr);
/// Runs a strategy with given rules.
Result<RewriteReport> run_strategy(Graph& graph, const RuleSet& set, const Strategy& strategy,
                                   const Env& params, const RewriteOptions& options);
/// Returns the strategy of that name, or PW1101 with the nearest one.
Result<const Strategy*> find_strategy(const RuleSet& rules, std::string_view name);

}  // namespace pw
