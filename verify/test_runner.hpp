// Runs the `test` blocks of .pwr files: builds the graph, applies the passes, and judges every
// expectation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// The correct number for an `expect R == 3` that failed.
struct CountFix {
  Span span;  ///< of the literal
  std::int64_t value = 0;
};
struct TestFailure {
  Span span;                         ///< the expectation, or the test if it could not run
  std::string message;               ///< one sentence
  std::string detail;                ///< a diff or rendered diagnostics; may be empty
  std::optional<CountFix> fix = {};  ///< for a count written as a literal
};
struct TestResult {
  std::string name;
  std::string file;
  Span span;
  int expectations = 0;
  bool negative = false;  ///< has a `because` clause
  std::vector<TestFailure> failures;
  double seconds = 0;  ///< excluded from deterministic output
  [[nodiscard]] bool passed() const { return failures.empty(); }
};
struct TestReport {
  std::vector<TestResult> tests;  ///< in file order
  [[nodiscard]] std::size_t failed() const;
  [[nodiscard]] std::size_t negative() const;
  [[nodiscard]] std::size_t expectations() const;
};

struct TestOptions {
  std::string only;  ///< selects tests whose name contains this
  std::vector<std::pair<std::string, std::string>>
      definitions;         ///< -D name=value; a test's own `with` takes precedence
  std::uint64_t seed = 1;  ///< seed of the contents for `expect numeric`
};

/// Runs the tests of the rule set whose source is in `sources`, or all tests if it is empty.
TestReport run_tests(const RuleSet& rules, const std::vector<SourceId>& sources = {},
                     const TestOptions& options = {});

/// Returns the text with corrected numbers in failed count expectations, reformatted if it was
/// canonical; nothing if no failure can be repaired this way. `because` reasons stay unchanged.
std::optional<std::string> updated_counts(const TestReport& report, const SourceMap& sources,
                                          SourceId source);

/// Prints one line for each test, followed by its failures.
std::string test_lines(const TestReport& report, const SourceMap& sources);
std::string test_summary(const TestReport& report);
/// Prints the test lines and the summary.
std::string test_report_text(const TestReport& report, const SourceMap& sources);

}  // namespace pw
