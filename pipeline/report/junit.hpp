// Test results as JUnit XML, which build services read.
#pragma once

#include <string>
#include <vector>

#include "pipeline/judge/judge.hpp"
#include "verify/test_runner.hpp"

namespace pw {

/// A file whose tests could not be run.
struct UnloadedFile {
  std::string file;
  std::string message;  ///< one sentence
  std::string report;   ///< all of its diagnostics
};

/// An unloaded file is a test with an error. Well-formed whatever the texts hold: bytes that XML
/// cannot carry become `?` or U+FFFD.
std::string junit(const std::vector<TestResult>& tests, const std::vector<UnloadedFile>& unloaded);
/// A rule is a test: what differs is a failure, one without a graph or that cannot run an error.
std::string junit(const std::vector<RuleJudgement>& judgements);

}  // namespace pw
