// Runs the tests of rule files and compares .counts.json files, each file separately.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/log.hpp"
#include "pipeline/report/junit.hpp"
#include "pipeline/report/table.hpp"
#include "verify/test_runner.hpp"

namespace pw {

struct TestRequest {
  std::vector<std::string> paths;        ///< rule files, count files, or folders
  std::vector<std::string> definitions;  ///< of params, unless a test sets them: tp=2
  std::string only;                      ///< tests whose name contains this
  std::uint64_t seed = 1;                ///< seed for `expect numeric`
  bool update = false;                   ///< correct counts in the files; other failures remain
  bool verdicts = false;                 ///< also judge the rules of the files
};

struct TestOutcome {
  TestReport report;                   ///< of all files
  std::string text;                    ///< one line for each test, followed by its failures
  std::vector<UnloadedFile> unloaded;  ///< one bad file does not affect the others
};

/// Receives the errors of a file that cannot be tested; their locations refer to the context.
using UnloadedDone = std::function<void(const Diagnostics&, const ContextPtr&)>;

/// Returns the .pwr and .counts.json files in folders, sorted by name, and files as they are. Fails
/// with PW1431 for an unreadable folder, PW1421 for one without such files.
Result<std::vector<std::string>> test_files(const std::vector<std::string>& paths);
/// Fails with PW1422 if no file has a defined param, PW1441 if no test runs.
Result<TestOutcome> run_test_files(
    const TestRequest& request, const Log& log,
    const UnloadedDone& unloaded = [](const Diagnostics&, const ContextPtr&) {});
[[nodiscard]] Table test_table(const TestReport& report);

}  // namespace pw
