// Runs the `test` blocks of .pwr files: builds the graph, applies the passes, and judges every
// expectation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// The number of `expect R == 3` as it would have to be.
struct CountFix {
  Span span;  ///< of the literal
  std::int64_t value = 0;
};
struct TestFailure {
  Span span;                         ///< the expectation, or the test where it could not run
  std::string message;               ///< one sentence
  std::string detail;                ///< a diff or rendered diagnostics; may be empty
  std::optional<CountFix> fix = {};  ///< of a count that is written as one number
};
struct TestResult {
  std::string name;
  std::string file;
  Span span;
  int expectations = 0;
  bool negative = false;  ///< has a `because`
  std::vector<TestFailure> failures;
  double seconds = 0;  ///< not part of deterministic output
  [[nodiscard]] bool passed() const { return failures.empty(); }
};
struct TestReport {
  std::vector<TestResult> tests;  ///< in file order
  [[nodiscard]] std::size_t failed() const;
  [[nodiscard]] std::size_t negative() const;
  [[nodiscard]] std::size_t expectations() const;
};

struct TestOptions {
  std::string only;  ///< run tests whose name contains this
  std::vector<std::pair<std::string, std::string>>
      definitions;         ///< -D name=value, under the test's own `with`
  std::uint64_t seed = 1;  ///< of the contents for `expect numeric`
};

/// All tests of the rule set's files whose source is one of `sources`; of all files when empty.
TestReport run_tests(const RuleSet& rules, const std::vector<SourceId>& sources = {},
                     const TestOptions& options = {});

/// The text with the numbers of failed counts replaced, in the canonical layout if it was in it;
/// nothing if no failure of this source can be repaired so. Reasons (`because`) are never touched.
std::optional<std::string> updated_counts(const TestReport& report, const SourceMap& sources,
                                          SourceId source);

/// A line a test, failures below it.
std::string test_lines(const TestReport& report, const SourceMap& sources);
std::string test_summary(const TestReport& report);
/// Both.
std::string test_report_text(const TestReport& report, const SourceMap& sources);

}  // namespace pw
