// Checks that a rewritten run is as accurate as the original one. Both are measured against the
// double-precision reference. The rewritten run's RMS error may be at most 1.5 times the original's
// plus one ulp of the output dtype. Quantized outputs may also differ from the original run by one
// step on at most 1 % of the elements. Integers and masks must be equal. An output without a finite
// element fails.
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
  double one_step = 0.01;  ///< share of quantized elements one step off
};

struct OutputCheck {
  std::string name;
  DType dtype = DType::f32;
  std::int64_t count = 0;
  double reference_rms = 0;       ///< over the reference's finite values
  double before_error = 0;        ///< RMS error of the original run
  double after_error = 0;         ///< RMS error of the rewritten run
  double bound = 0;               ///< limit for after_error
  double largest_difference = 0;  ///< between both runs
  std::int64_t one_step =
      0;  ///< quantized elements one step off; 0 if the rewritten run equals the reference
  std::int64_t more_steps = 0;  ///< quantized elements more than one step off
  std::int64_t left_out = 0;  ///< elements excluded from the errors because some side is not finite
  std::int64_t non_finite = 0;  ///< NaN or infinity on one side only
  bool passed = false;
  bool tied = false;   ///< passes once the report's ties are resolved like the rewritten run
  std::string reason;  ///< reason for the failure; empty if passed
};
/// A decision that rounding determines: its operands differ by less than two runs do.
struct Tie {
  std::string node, op;  ///< of the deciding op
  std::int64_t rank = 0;
  std::int64_t place = 0;  ///< element of its result, or row, in row-major order
  std::int64_t count = 1;  ///< number of consecutive elements; `place` is the first
  double margin = 0;       ///< distance of the operands; the smallest for several elements
  double rounding = 0;     ///< possible distance of two runs at this point
};
/// "topk at %scores, row 3: margin 1.2e-08 is below rounding 3e-08"
[[nodiscard]] std::string print(const Tie& tie);
struct NumericReport {
  std::vector<OutputCheck> outputs;
  std::vector<Tie> ties;  ///< ties that the rewritten run resolves differently from the reference
  [[nodiscard]] bool passed() const;
};

/// Returns the name of an output: its own, or the name of the input that it is written to.
[[nodiscard]] std::string output_name(const Graph& graph, std::size_t output);
/// Checks one output. `reference` is f64; `before` and `after` have the output's dtype. Extents
/// must agree.
OutputCheck check_output(const std::string& name, const TensorView& reference,
                         const TensorView& before, const TensorView& after,
                         const NumericLimits& limits = {});
/// Checks all outputs by position; names are those of `original`.
NumericReport check_outputs(const Graph& original, std::span<const Tensor> reference,
                            std::span<const Tensor> before, std::span<const Tensor> after,
                            const NumericLimits& limits = {});
/// Checks one output when ties were resolved as in the rewritten run. `settled` is the reference
/// with these ties, `plain` the reference without. The unrewritten run's errors are relative to the
/// nearer of both. `leeway` is added to the limit.
OutputCheck check_settled(const std::string& name, const TensorView& plain,
                          const TensorView& settled, const TensorView& before,
                          const TensorView& after, double leeway, const NumericLimits& limits = {});
/// The outputs of an unrewritten graph by rank, from which the allowed errors are derived.
struct Yardstick {
  RankOutputs before;     ///< on the backend
  RankOutputs reference;  ///< on the double-precision interpreter
};
struct CheckCaches;
/// Runs the unrewritten graph on the backend and the reference. With `caches`, sequences continue
/// across steps.
Result<Yardstick> run_yardstick(const Graph& original, Backend& backend, std::span<Weights> ranks,
                                const Step& step, const Symbols& symbols = {},
                                CheckCaches* caches = nullptr);
/// Returns one report for each rank.
std::vector<NumericReport> check_outputs(const Graph& original, const Yardstick& yardstick,
                                         const RankOutputs& after,
                                         const NumericLimits& limits = {});
/// Runs `original` on the backend and on the reference, and checks a rewritten run's outputs
/// against them.
Result<NumericReport> check_against(const Graph& original, Backend& backend, Weights& weights,
                                    const Step& step, std::span<const Tensor> after,
                                    const Symbols& symbols = {}, const NumericLimits& limits = {});
/// The state that the two comparison runs carry between steps.
struct CheckCaches {
  KvCache before, reference;
};
/// Returns one report for each rank. With `caches`, sequences continue across steps; `step`
/// supplies the cache of the rewritten run.
Result<std::vector<NumericReport>> check_against(const Graph& original, Backend& backend,
                                                 std::span<Weights> ranks, const Step& step,
                                                 const RankOutputs& after,
                                                 const Symbols& symbols = {},
                                                 const NumericLimits& limits = {},
                                                 CheckCaches* caches = nullptr);

}  // namespace pw
