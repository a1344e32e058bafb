// Reduces a failing pipeline to a test case: a minimal graph and a minimal set of rules that still
// fail.
#pragma once

#include <string>
#include <vector>

#include "failures/failure.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

struct ReduceRequest {
  std::string pipeline;
  FailureRequest failure;
  std::vector<std::string> files;  ///< rule files as named, which the test uses
  std::size_t most_runs = 2000;    ///< maximum number of tested graphs
};

struct ReduceOutcome {
  bool fails = false;  ///< false if the run does not fail; then nothing below is set
  FailureKind kind = FailureKind::numeric;
  std::string reason;  ///< for numbers: the output and its error
  std::size_t nodes_before = 0, nodes = 0, runs = 0;
  std::vector<std::string> rules;  ///< as written, and built-in passes
  std::string graph;               ///< .pwg
  std::string test;                ///< .pwr: `use` lines, a pass of the rules, and a test
};

/// Returns a test that was verified to fail. Fails with PW1101 for an unknown pipeline, PW1407 for
/// one with ranges, PW1417 if no failing test can be written.
Result<ReduceOutcome> reduce(const Graph& graph, const LoadedRules& rules,
                             const ReduceRequest& request, const Log& log);

/// Returns `reduction` (at most one row of failure, rules, nodes, and runs), `reason`, and `test`.
[[nodiscard]] Answer reduce_answer(const ReduceOutcome& outcome);

}  // namespace pw
