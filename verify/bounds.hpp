// Running error analysis: how far a run in the declared dtypes may be from the exact value of each
// element, by the roundings that its graph makes, and whether a step may leave the range of its
// dtype. Two runs of one function that differ by more than both bounds are not one function.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/collectives.hpp"
#include "backends/program.hpp"

namespace pw {

/// What happened to an element on its way; of several, the last of this list.
enum class RangeState : std::uint8_t {
  inside,   ///< every step stayed among the normal numbers of its dtype
  partial,  ///< a sum of several ops passes the end of the range, and may come back
  inner,    ///< a sum within one op passes the end of the range and comes back, in some orders
  left,     ///< a step overflowed, or lost bits because it underflowed
};

struct BoundedTensor {
  Tensor exact;               ///< f64: without rounding, but for casts to fp8 and integers
  std::vector<double> error;  ///< at most so far from `exact`, as if no step left the range
  std::vector<RangeState> reach;
};

struct BoundOptions {
  bool exact = false;   ///< bound the run in double precision that `exact` comes from
  double coarsest = 1;  ///< steps inside of the graph round by at most this, relative to the result
};

/// The tensors of one rank, in the order of the graph's outputs.
using BoundedOutputs = std::vector<BoundedTensor>;

/// The largest relative rounding of a float dtype; 0 for all others.
[[nodiscard]] double unit_of(DType dtype);
/// The smallest number above 0 of a float dtype.
[[nodiscard]] double smallest_of(DType dtype);

class BoundedProgram {
 public:
  static Result<BoundedProgram> make(const Graph& graph);
  /// By rank. `inputs` are by rank, in the order of the graph's.
  Result<std::vector<BoundedOutputs>> run(std::span<const std::vector<TensorView>> inputs,
                                          const RunContext& context,
                                          const BoundOptions& options = {}) const;
  /// The largest rounding of a step inside of the graph, casts of outputs left out.
  [[nodiscard]] double coarsest_step() const;
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  friend class BoundedRun;
  struct Step {
    NodeId node;
    Kernel kernel = nullptr;
    Collective collective = nullptr;
    RankGroup group;
    bool output = false;  ///< what it gives is returned, perhaps in another shape
  };
  BoundedProgram(Graph graph, Graph unrounded)
      : graph_(std::move(graph)), unrounded_(std::move(unrounded)) {}

  Graph graph_;      ///< inlined
  Graph unrounded_;  ///< the same, rounded to fp8 by casts and quantising ops only
  std::vector<Step> steps_;
};

}  // namespace pw
