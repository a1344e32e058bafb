// What single rewrites of a run change, each as a small graph that computes its results in both
// ways, of the types and attributes that are there.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewriter/rewriter.hpp"
#include "verify/prover.hpp"

namespace pw {

struct RewriteWindow {
  RuleId rule;  ///< of the run: those that it opened stand behind those of the set
  std::string pass, node;
  std::optional<Graph> graph;  ///< its outputs are all before, then all after
  std::string problem;         ///< why there is no graph
  std::string key;             ///< of windows that are alike
};

/// Runs the pipeline on a copy of the graph; the windows of the rewrites by `wanted`, in order.
/// What is undone has none.
Result<std::vector<RewriteWindow>> windows_of(const Graph& graph, const RuleSet& rules,
                                              const std::string& pipeline, const Env& params,
                                              const RewriteOptions& options,
                                              const std::set<RuleId>& wanted);

/// Proves one rewrite; `prover` is null in a build without the proof lab. The window's graph is
/// used up.
WindowVerdict prove_window(RewriteWindow& window, WindowProver* prover);

}  // namespace pw
