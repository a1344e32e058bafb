// Which pass makes the numbers wrong: the graph after each pass of a run, compared with the graph
// before the first.
#pragma once

#include <string>
#include <vector>

#include "pipeline/run/run.hpp"

namespace pw {

/// The graph after one pass, on one step.
struct PassCheck {
  std::string pass;
  std::size_t number = 0;  ///< of the pass among those that ran, from 1
  std::int64_t tokens = 0;
  double error = 0, bound = 0;  ///< of the output nearest to its bound, or furthest beyond it
  bool passed = false;
  std::string reason;  ///< which output, and why; when passed, the first tie, or empty
};

/// The steps of the record, each on the whole graph after each pass, on the backend of the request:
/// by the criterion of `check`. The record has its versions.
Result<std::vector<PassCheck>> check_each_pass(const RunRequest& request, const RunRecord& record,
                                               const Log& log);

/// A row each.
[[nodiscard]] Table pass_check_table(const std::vector<PassCheck>& checks);
/// The first pass whose graph fails; null where none does.
[[nodiscard]] const PassCheck* first_failing(const std::vector<PassCheck>& checks);

}  // namespace pw
