// From a failing pipeline to the one change of it after which it fails: bisection over the numbered
// rewrites of a run.
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
  std::size_t most_runs = 40;  ///< graphs that the failure is looked for in
};

/// The change after which the failure is there, and was not before.
struct Culprit {
  std::size_t number = 0;  ///< of the change, from 1
  std::size_t first = 0;   ///< less than `number` where changes between could not be told apart
  Change change;
  Graph before, after;                   ///< the graph without and with it, with the same node ids
  std::vector<NodeId> matched, created;  ///< alive in `before`, in `after`
};
struct BisectOutcome {
  std::size_t changes = 0, runs = 0;
  std::string reason;              ///< of numbers: which output, and how
  std::optional<Culprit> culprit;  ///< none: the run does not fail
};

/// At most ⌈log2(changes)⌉ + 2 runs, but for those that cannot be told; see Saying. PW1101 for an
/// unknown pipeline, PW1407 for one of ranges, PW1417 where the graph fails before any change,
/// where it cannot be told, or a failure is not of a graph alone.
Result<BisectOutcome> bisect(const Graph& graph, const LoadedRules& rules,
                             const BisectRequest& request, const Log& log);

/// `culprit`: no row or one, of change, pass, rule, nodes before and after; `reason`, `changes`,
/// `runs`.
[[nodiscard]] Answer bisect_answer(const BisectOutcome& outcome);

}  // namespace pw
