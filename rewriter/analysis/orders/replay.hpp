// The changes of a run, numbered from 1 in its final history, and the graph after one of them. A
// change is a rewrite by a rule, a built-in pass that ran, or a saturation.
#pragma once

#include <optional>

#include "rewriter/rewriter.hpp"

namespace pw {

struct Change {
  std::string pass;  ///< the top-level pass
  std::string what;  ///< the rule as written, or the built-in pass
  RuleId rule;       ///< of the set; invalid of what no single rule did
  ast::Strategy::Kind kind = ast::Strategy::Kind::greedy;  ///< of the strategy that made it
};

struct Replay {
  std::vector<Change> changes;      ///< of the whole run
  Graph graph;                      ///< after the requested change
  std::optional<MatchEvent> match;  ///< of that change, if a rule made it; ids of this graph
  RewriteReport report;             ///< of the whole run
};

/// Runs the strategy and returns the graph after change `at`: 0 is the graph before the run, a
/// number beyond the last the graph after it. Node ids are equal in every replay of one run.
Result<Replay> replay(const Graph& graph, const RuleSet& rules, const Strategy& strategy,
                      const Env& params, std::size_t at, const RewriteOptions& options = {});

}  // namespace pw
