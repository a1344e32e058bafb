// A graph compiled once for many samples: in its dtypes, in double precision, and with error
// bounds.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "exec/runner.hpp"
#include "verify/bounds.hpp"

namespace pw {

/// A sample: contents by rank, and sizes.
struct DrawnSample {
  std::span<Weights> ranks;
  const Symbols& symbols;
  const Step& step;
};

class SampledGraph {
 public:
  /// The graph must outlive it.
  explicit SampledGraph(const Graph& graph);
  /// Runs the sample on the eager engine.
  Result<RankOutputs> run(const DrawnSample& sample);
  /// Runs the sample on the reference; returns f64 tensors.
  Result<RankOutputs> run_exact(const DrawnSample& sample);
  Result<std::vector<BoundedOutputs>> bounds(const DrawnSample& sample,
                                             const BoundOptions& options);
  /// Returns BoundedProgram::coarsest_step; 1 if there is no bounded program.
  [[nodiscard]] double coarsest_step();

 private:
  Result<RankOutputs> run_on(std::unique_ptr<Executable>& compiled, bool exact,
                             const DrawnSample& sample);
  const Result<BoundedProgram>& bounded();

  const Graph& graph_;
  std::unique_ptr<Backend> eager_, interpreter_;
  std::unique_ptr<Executable> typed_, exact_;
  std::optional<Result<BoundedProgram>> bounded_;
};

}  // namespace pw
