// Compares what two graphs gave for one sample, element by element.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/tensor.hpp"
#include "graph/graph.hpp"
#include "verify/contents.hpp"
#include "verify/verdict.hpp"

namespace pw {

/// One rank of one sample. Outputs in the graph's order, as run_whole gives them.
struct SampleRuns {
  Contents contents = Contents::ordinary;
  std::vector<std::pair<std::string, Tensor>> inputs;  ///< to show
  std::vector<Tensor> before, after;                   ///< in their dtypes
  std::vector<Tensor> exact_before, exact_after;       ///< of the reference, f64; may be empty
};

struct JudgeOptions {
  double exact = 1e-9;  ///< largest difference of the reference runs, relative to the largest value
  double ulps = 16;     ///< largest distance of finite elements
  /// Where sums are: how much larger the error against the reference may be after than before,
  /// beyond `ulps`.
  double error = 1.5;
};

/// Whether rounding differences may grow beyond any number of ulps by what they are added to.
[[nodiscard]] bool has_sums(const Graph& graph);

/// `sums`: of either graph. Samples of NaN or infinity tell only what differs for these.
Judgement judge(const Graph& original, const SampleRuns& runs, bool sums,
                const JudgeOptions& options = {});

}  // namespace pw
