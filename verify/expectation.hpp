// Judges one `expect` line against a graph before and after its passes.
#pragma once

#include <optional>
#include <vector>

#include "rewriter/explain/explain.hpp"
#include "rewriter/strategies/ranges.hpp"
#include "verify/test_runner.hpp"

namespace pw {

/// The graph that the passes of a test produce for one token range.
struct TestVariant {
  TokenRange range;
  std::string name;  ///< "17..256"; empty if no pipeline has ranges
  std::vector<Condition> conditions;
  Graph after;
  std::vector<RewriteReport> reports;  ///< one for each applied pass
  std::vector<ExplainedRun> runs;      ///< the strategies and ranges that produced the reports
};

struct TestRun {
  const RuleSet& rules;
  const Env& params;
  const Graph& before;
  const std::vector<TestVariant>& variants;  ///< at least one
  std::uint64_t seed;
};

/// Returns nothing if the expectation holds in the range that it names, or in all ranges if it
/// names none.
std::optional<TestFailure> judge(const TestRun& run, const ast::Expectation& expectation);

}  // namespace pw
