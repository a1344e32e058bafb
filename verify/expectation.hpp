// Judges one `expect` line against a graph before and after its passes.
#pragma once

#include <optional>
#include <vector>

#include "rewriter/explain/explain.hpp"
#include "rewriter/strategies/ranges.hpp"
#include "verify/test_runner.hpp"

namespace pw {

/// What the passes of a test made for one range of tokens.
struct TestVariant {
  TokenRange range;
  std::string name;  ///< "17..256"; empty where no pipeline states ranges
  std::vector<Condition> conditions;
  Graph after;
  std::vector<RewriteReport> reports;  ///< one an applied pass
  std::vector<ExplainedRun> runs;      ///< the same: what was run, on which range
};

struct TestRun {
  const RuleSet& rules;
  const Env& params;
  const Graph& before;
  const std::vector<TestVariant>& variants;  ///< at least one
  std::uint64_t seed;
};

/// Nothing when it holds: in the range it names, else in every one.
std::optional<TestFailure> judge(const TestRun& run, const ast::Expectation& expectation);

}  // namespace pw
