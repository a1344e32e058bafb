// Isolates single rewrites of a run: each becomes a small graph that computes its results both
// ways, with the actual types and attributes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewriter/rewriter.hpp"
#include "verify/prover.hpp"

namespace pw {

struct RewriteWindow {
  RuleId rule;  ///< numbered as in the run: opened rules follow those of the set
  std::string pass, node;
  std::optional<Graph> graph;  ///< its outputs are the old ones, then the new ones
  std::string problem;         ///< reason if there is no graph
  std::string key;             ///< equal for equivalent windows
};

/// Replays the pipeline on a copy of the graph and returns the windows of the rewrites by `wanted`,
/// in order. Undone rewrites have none.
Result<std::vector<RewriteWindow>> windows_of(const Graph& graph, const RuleSet& rules,
                                              const std::string& pipeline, const Env& params,
                                              const RewriteOptions& options,
                                              const std::set<RuleId>& wanted);

/// Proves a window; `prover` is null in a build without the proof lab. Consumes the window's graph.
WindowVerdict prove_window(RewriteWindow& window, WindowProver* prover);

}  // namespace pw
