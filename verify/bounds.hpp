// Running error analysis: bounds the distance of a run in the declared dtypes from the exact value
// of each element, and detects steps that may leave the range of their dtype. If two runs differ by
// more than the sum of both bounds, they compute different functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/collectives.hpp"
#include "backends/program.hpp"

namespace pw {

/// The worst range event in an element's computation; later enumerators are worse.
enum class RangeState : std::uint8_t {
  inside,   ///< every step stayed within the normal numbers of its dtype
  partial,  ///< a sum over several ops exceeds the range, but may return
  inner,    ///< a sum within one op exceeds the range in some orders, but returns
  left,     ///< a step overflowed, or lost bits to underflow
};

struct BoundedTensor {
  Tensor exact;               ///< f64, unrounded except for casts to fp8 and integers
  std::vector<double> error;  ///< bound on the distance from `exact` if no step leaves the range
  std::vector<RangeState> reach;
};

struct BoundOptions {
  bool exact = false;   ///< bound the double-precision run that computes `exact`
  double coarsest = 1;  ///< largest rounding of a step inside the graph, relative to its result
};

/// The bounded outputs of one rank, in the graph's order.
using BoundedOutputs = std::vector<BoundedTensor>;

/// Returns the unit roundoff of a float dtype; 0 for all others.
[[nodiscard]] double unit_of(DType dtype);

class BoundedProgram {
 public:
  static Result<BoundedProgram> make(const Graph& graph);
  /// Runs the graph and returns the outputs by rank. `inputs` are by rank, in the graph's order.
  Result<std::vector<BoundedOutputs>> run(std::span<const std::vector<TensorView>> inputs,
                                          const RunContext& context,
                                          const BoundOptions& options = {}) const;
  /// Returns the largest rounding of a step inside the graph, excluding casts of outputs.
  [[nodiscard]] double coarsest_step() const;
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  friend class BoundedRun;
  struct Step {
    NodeId node;
    Kernel kernel = nullptr;
    Collective collective = nullptr;
    RankGroup group;
    bool output = false;  ///< the result is an output, perhaps reshaped
  };
  BoundedProgram(Graph graph, Graph unrounded)
      : graph_(std::move(graph)), unrounded_(std::move(unrounded)) {}

  Graph graph_;      ///< inlined
  Graph unrounded_;  ///< the same graph, rounded to fp8 by casts and quantizing ops only
  std::vector<Step> steps_;
};

}  // namespace pw
