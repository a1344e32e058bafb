// Test results as JUnit XML, the form that build services read.
#pragma once

#include <string>
#include <vector>

#include "verify/test_runner.hpp"

namespace pw::cli {

/// Well-formed whatever the texts hold: bytes that XML cannot carry become `?` or U+FFFD.
std::string junit(const std::vector<TestResult>& tests);

}  // namespace pw::cli
