// Finds the change that introduces a failure of a pipeline, by bisection over the numbered rewrites
// of a run.
#pragma once

#include <optional>
#include <string>

#include "failures/failure.hpp"
#include "pipeline/report/table.hpp"
#include "rewriter/analysis/orders/replay.hpp"

namespace pw {

struct BisectRequest {
  std::string pipeline;
  FailureRequest failure;
  std::size_t most_runs = 40;  ///< maximum number of tested graphs
};

/// The first change after which the failure occurs.
struct Culprit {
  std::size_t number = 0;  ///< number of the change, from 1
  std::size_t first = 0;   ///< less than `number` if earlier changes were inconclusive
  Change change;
  std::string place = {};  ///< "mine.pwr:8:1" of the rule; empty if no single rule did it
  Graph before, after;     ///< the graph before and after the change, with common node ids
  std::vector<NodeId> matched, created;  ///< alive in `before` and in `after`, respectively
};
struct BisectOutcome {
  std::size_t changes = 0, runs = 0;
  std::string reason;              ///< for numbers: the output and its error
  std::optional<Culprit> culprit;  ///< nothing if the run does not fail
};

/// Bisects with at most ⌈log2(changes)⌉ + 2 runs, plus inconclusive ones; see FailureVerdict. Fails
/// with PW1101 for an unknown pipeline, PW1407 for one with ranges. Fails with PW1417 if the graph
/// fails before any change, if the result is inconclusive, or if the failure is not a property of a
/// graph.
Result<BisectOutcome> bisect(const Graph& graph, const LoadedRules& rules,
                             const BisectRequest& request, const Log& log);

/// Returns `culprit` (at most one row of change, pass, rule, place, nodes before and after),
/// `reason`, `changes`, and `runs`.
[[nodiscard]] Answer bisect_answer(const BisectOutcome& outcome);
/// Prints the culprit as "rewrite 5 of 8: rule `glu` in pass `gates`, mine.pwr:8:1", with its nodes
/// before and after; empty if there is none.
[[nodiscard]] std::string bisect_text(const BisectOutcome& outcome);

}  // namespace pw
