// Measures the steps of a planned graph: as planned, eagerly, and padded to the most rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/run/execution.hpp"

namespace pw {

struct BenchRequest : ExecutionRequest {
  /// A step for each token count, with totals weighted by frequency: a file, or a generated
  /// histogram (see histogram_named).
  std::string histogram;
  int repeats = 5;  ///< of each step, after one uncounted run
};

/// A step, its frequency, and its measurements. Seconds are medians.
struct MeasuredStep {
  PlannedStep planned;
  std::int64_t count = 1;
  StepReport report = {};  ///< as planned
  double eager = 0;        ///< at its own size, without capture
  double padded = 0;       ///< padded to the most rows of any step
  std::vector<double> piece_seconds = {};
};

/// Measurements of generated steps. Seconds are medians, divided by the steps.
struct MeasuredGeneration {
  std::int64_t steps = 0, launches = 0, sequences = 0;
  double seconds = 0;  ///< as planned
  double eager = 0;    ///< at their own sizes, without capture
};

struct BenchReport {
  RunRecord record;
  std::vector<MeasuredStep> steps;
  std::optional<MeasuredGeneration> generation;
  std::int64_t most_rows = 0;
  bool weighted = false;  ///< totals are weighted by a histogram
  [[nodiscard]] Table step_table() const;
  [[nodiscard]] Table generation_table() const;
  /// Medians over the pieces of a class and the steps of a size.
  [[nodiscard]] Table piece_table() const;
  [[nodiscard]] Table totals() const;
};

/// Fails with PW1407 for a pipeline that makes several graphs.
Result<BenchReport> bench_model(const ContextPtr& context, const BenchRequest& request,
                                const Log& log);

}  // namespace pw
