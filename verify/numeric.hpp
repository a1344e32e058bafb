// Is a rewritten run as good as the original one? Both are measured against the double-precision
// reference: the rewritten run's RMS error may be at most 1.5 times the original's plus one ulp of
// the output dtype; quantised outputs may also differ from the original run by one step on at most
// 1 % of the elements; integers and masks must be equal. An output without one finite element says
// nothing, and fails.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "exec/runner.hpp"
#include "tensor/kv_cache.hpp"

namespace pw {

struct NumericLimits {
  double factor = 1.5;
  double ulps = 1;
  double apart = 0.01;  ///< share of quantised elements one step apart
};

struct OutputCheck {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t count = 0;
  double reference_rms = 0;       ///< of the reference's finite values
  double before_error = 0;        ///< RMS error of the original run
  double after_error = 0;         ///< RMS error of the rewritten run
  double bound = 0;               ///< what after_error may be
  double largest_difference = 0;  ///< between the two runs
  std::int64_t one_step =
      0;  ///< quantised: elements one step apart; where the rewritten run meets the reference, none
  std::int64_t more_steps = 0;  ///< quantised: elements further apart
  std::int64_t left_out = 0;    ///< of the errors: elements that are not finite on some side
  std::int64_t non_finite = 0;  ///< NaN or infinity where the others have none, or the reverse
  bool passed = false;
  bool tied = false;   ///< passed, given how the rewritten run settles the report's ties
  std::string reason;  ///< why it failed; empty when passed
};
/// A decision that rounding settles: the operands are less apart than two runs are.
struct Tie {
  std::string node, op;  ///< that decides
  std::int64_t rank = 0;
  std::int64_t place = 0;  ///< the element of its result, or the row, in row-major order
  std::int64_t count = 1;  ///< more than 1: so many elements, of which `place` is the first
  double margin = 0;       ///< how far apart the operands are; of several, the smallest
  double rounding = 0;     ///< how far runs may be apart there
};
/// "topk at %scores, row 3: margin 1.2e-08 is below rounding 3e-08"
[[nodiscard]] std::string print(const Tie& tie);
struct NumericReport {
  std::vector<OutputCheck> outputs;
  std::vector<Tie> ties;  ///< that the rewritten run settles in another way than the reference
  [[nodiscard]] bool passed() const;
};

/// Of what a run gives: outputs by their own names, what was written by that of the input.
[[nodiscard]] std::string output_name(const Graph& graph, std::size_t output);
/// One output. `reference` is f64; `before` and `after` have the output's dtype; extents agree.
OutputCheck check_output(const std::string& name, const TensorView& reference,
                         const TensorView& before, const TensorView& after,
                         const NumericLimits& limits = {});
/// All outputs, by position; names are those of `original`.
NumericReport check_outputs(const Graph& original, std::span<const Tensor> reference,
                            std::span<const Tensor> before, std::span<const Tensor> after,
                            const NumericLimits& limits = {});
/// One output of a run that settled ties as `settled` does, an output of the reference, and
/// `plain` does not. The errors of the unrewritten run are those against the nearer of the two;
/// `leeway` is added to the bound.
OutputCheck check_settled(const std::string& name, const TensorView& plain,
                          const TensorView& settled, const TensorView& before,
                          const TensorView& after, double leeway, const NumericLimits& limits = {});
/// The outputs of an unrewritten graph, by rank: what a run's errors are measured by.
struct Yardstick {
  RankOutputs before;     ///< on the backend
  RankOutputs reference;  ///< on the double-precision interpreter
};
struct CheckCaches;
/// With `caches`, steps are those of sequences that go on.
Result<Yardstick> run_yardstick(const Graph& original, Backend& backend, std::span<Weights> ranks,
                                const Step& step, const Symbols& symbols = {},
                                CheckCaches* caches = nullptr);
/// A report a rank.
std::vector<NumericReport> check_outputs(const Graph& original, const Yardstick& yardstick,
                                         const RankOutputs& after,
                                         const NumericLimits& limits = {});
/// Runs `original` whole on the backend and on the reference, and compares a rewritten run's
/// outputs with them.
Result<NumericReport> check_against(const Graph& original, Backend& backend, Weights& weights,
                                    const Step& step, std::span<const Tensor> after,
                                    const Symbols& symbols = {}, const NumericLimits& limits = {});
/// What the two runs beside a rewritten one remember from step to step.
struct CheckCaches {
  KvCache before, reference;
};
/// The same on several ranks: a report a rank. With `caches`, steps are those of sequences that go
/// on; `step` brings its own cache for the rewritten run.
Result<std::vector<NumericReport>> check_against(const Graph& original, Backend& backend,
                                                 std::span<Weights> ranks, const Step& step,
                                                 const RankOutputs& after,
                                                 const Symbols& symbols = {},
                                                 const NumericLimits& limits = {},
                                                 CheckCaches* caches = nullptr);

}  // namespace pw
