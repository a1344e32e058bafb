// The tests of rule files and the counts kept in .counts.json files, each file on its own.
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
  std::vector<std::string> paths;        ///< rule files, files of counts, or folders of them
  std::vector<std::string> definitions;  ///< of params, unless a test sets them: tp=2
  std::string only;                      ///< tests whose name contains this
  std::uint64_t seed = 1;                ///< of the numbers for `expect numeric`
  bool update = false;                   ///< counts are put right in the files; other failures stay
  bool verdicts = false;                 ///< judge the rules of the files, too
};

struct TestOutcome {
  TestReport report;                   ///< of all files
  std::string text;                    ///< a line a test, failures below it
  std::vector<UnloadedFile> unloaded;  ///< each hides no other
};

/// What keeps a file from being tested; its places are of the context.
using UnloadedDone = std::function<void(const Diagnostics&, const ContextPtr&)>;

/// The .pwr and .counts.json files below folders, in order of their names; a file is itself. PW1431
/// where a folder cannot be read, PW1421 where it has none.
Result<std::vector<std::string>> test_files(const std::vector<std::string>& paths);
/// PW1422 where no file has a param of the definitions, PW1441 where no test is run.
Result<TestOutcome> run_test_files(
    const TestRequest& request, const Log& log,
    const UnloadedDone& unloaded = [](const Diagnostics&, const ContextPtr&) {});
[[nodiscard]] Table test_table(const TestReport& report);

}  // namespace pw
