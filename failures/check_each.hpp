// Finds the pass that breaks the numbers: compares the graph after each pass with the original
// graph.
#pragma once

#include <string>
#include <vector>

#include "pipeline/run/run.hpp"

namespace pw {

/// The check of the graph after one pass, on one step.
struct PassCheck {
  std::string pass;
  std::size_t number = 0;  ///< number of the pass among those that ran, from 1
  std::int64_t tokens = 0;
  double error = 0, bound = 0;  ///< for the output closest to its bound, or furthest beyond it
  bool passed = false;
  std::string reason;  ///< the failing output and why; if passed, the first tie or empty
};

/// Checks the whole graph after each pass on the record's steps and the request's backend, by the
/// criterion of `check`. The record must have versions.
Result<std::vector<PassCheck>> check_each_pass(const RunRequest& request, const RunRecord& record,
                                               const Log& log);

/// Returns one row for each check.
[[nodiscard]] Table pass_check_table(const std::vector<PassCheck>& checks);
/// Returns the first failing pass; null if there is none.
[[nodiscard]] const PassCheck* first_failing(const std::vector<PassCheck>& checks);

}  // namespace pw
