// What the steps of a planned graph take: as planned, eagerly, and padded to the most rows.
#pragma once

#include <string>
#include <vector>

#include "pipeline/run/execution.hpp"

namespace pw {

struct BenchRequest : ExecutionRequest {
  /// A step of each token count, the totals weighted by how often it occurs: a file, or a made one
  /// (see histogram_named).
  std::string histogram;
  int repeats = 5;  ///< of each step, after one that is not counted
};

/// A step, how often it occurs, and what was measured of it. Seconds are medians.
struct MeasuredStep {
  PlannedStep planned;
  std::int64_t count = 1;
  StepReport report = {};  ///< as planned
  double eager = 0;        ///< at its own size, nothing captured
  double padded = 0;       ///< to the most rows that any step runs as
  std::vector<double> piece_seconds = {};
};

struct BenchReport {
  RunRecord record;
  std::vector<MeasuredStep> steps;
  std::int64_t most_rows = 0;
  bool weighted = false;  ///< by a histogram
  [[nodiscard]] Table step_table() const;
  /// Medians over the pieces of a class and the steps of a size.
  [[nodiscard]] Table piece_table() const;
  [[nodiscard]] Table totals() const;
};

/// PW1407 for a pipeline that makes several graphs.
Result<BenchReport> bench_model(const ContextPtr& context, const BenchRequest& request,
                                const Log& log);

}  // namespace pw
