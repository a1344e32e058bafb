// Judges one `expect` line against a graph before and after its passes.
#pragma once

#include <optional>
#include <vector>

#include "rewriter/rewriter.hpp"
#include "verify/test_runner.hpp"

namespace pw {

struct TestRun {
  const RuleSet& rules;
  const Env& params;
  const Graph& before;
  const Graph& after;
  const std::vector<RewriteReport>& reports;  ///< one an applied pass
  std::uint64_t seed;
};

/// Nothing when it holds.
std::optional<TestFailure> judge(const TestRun& run, const ast::Expectation& expectation);

}  // namespace pw
