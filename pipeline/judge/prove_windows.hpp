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

struct WindowVerdict {
  RuleVerdict verdict = RuleVerdict::unknown;
  std::string reason;  ///< open obligation if unknown
};
/// Proves a window for all sizes that the graph's facts allow. Consumes its graph.
WindowVerdict prove_window(RewriteWindow& window, proof::Solver& solver);

}  // namespace pw
