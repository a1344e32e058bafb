// From a failing pipeline to a test that shows it: the smallest graph and the fewest rules found on
// which the failure is still there.
#pragma once

#include <string>
#include <vector>

#include "failures/failure.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

struct ReduceRequest {
  std::string pipeline;
  FailureRequest failure;
  std::vector<std::string> files;  ///< of the rules, as they were named: the test uses them
  std::size_t most_runs = 2000;    ///< graphs that the failure is looked for in
};

struct ReduceOutcome {
  bool fails = false;  ///< else the run does not, and nothing below is set
  FailureKind kind = FailureKind::numeric;
  std::string reason;  ///< of numbers: which output, and how
  std::size_t nodes_before = 0, nodes = 0, runs = 0;
  std::vector<std::string> rules;  ///< as written, and built-in passes
  std::string graph;               ///< .pwg
  std::string test;                ///< .pwr: `use` of the files, a pass of the rules, and a test
};

/// The test fails while the fault is there: it was run. PW1101 for an unknown pipeline, PW1407 for
/// one of ranges, PW1417 where no test that fails can be written.
Result<ReduceOutcome> reduce(const Graph& graph, const LoadedRules& rules,
                             const ReduceRequest& request, const Log& log);

/// `reduction`: no row or one, of failure, rules, nodes and runs; `reason`, `test`.
[[nodiscard]] Answer reduce_answer(const ReduceOutcome& outcome);

}  // namespace pw
