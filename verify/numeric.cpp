#include "verify/numeric.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "tensor/numerics.hpp"
#include "verify/pointwise_bounds.hpp"

namespace pw {
namespace {

/// A root mean square whose squares neither overflow nor vanish: it stores them relative to the
/// square of the largest number.
class MeanSquare {
 public:
  void add(double x) {
    const double size = std::min(std::fabs(x), std::numeric_limits<double>::max());
    ++count_;
    if (size <= largest_) {
      if (size > 0) sum_ += square(size / largest_);
      return;
    }
    sum_ = 1 + sum_ * square(largest_ / size);
    largest_ = size;
  }
  [[nodiscard]] double root() const {
    return largest_ * std::sqrt(sum_ / static_cast<double>(std::max<std::int64_t>(count_, 1)));
  }

 private:
  static double square(double x) { return x * x; }

  double largest_ = 0, sum_ = 0;
  std::int64_t count_ = 0;
};

/// An infinity as the number that would come after the dtype's largest one; f64 has none.
double beyond(DType dtype, double x) {
  if (!std::isinf(x)) return x;
  const double largest = format_of(dtype).largest, next = largest + ulp(dtype, largest);
  return std::copysign(std::min(next, std::numeric_limits<double>::max()), x);
}

class Comparison {
 public:
  Comparison(OutputCheck& check, const NumericLimits& limits, const TensorView& reference,
             const TensorView& before, const TensorView& after)
      : check_(check), limits_(limits), reference_(reference), before_(before), after_(after) {}

  void run() {
    for (std::int64_t i = 0; i < check_.count; ++i) element(i);
    check_.reference_rms = reference_sum_.root();
    check_.before_error = before_sum_.root();
    check_.after_error = after_sum_.root();
  }

 private:
  void element(std::int64_t i) {
    const DType dtype = check_.dtype;
    const double reference = load(reference_.dtype, reference_.data, i);
    const double before = load(dtype, before_.data, i), after = load(dtype, after_.data, i);
    const double representable = rounded(dtype, reference);
    if (!std::isfinite(before) || !std::isfinite(after) || !std::isfinite(representable)) {
      check_.non_finite += !same(after, before) && !same(after, representable) &&
                           !close(before, after, representable);
      ++check_.left_out;
      return;
    }
    reference_sum_.add(reference);
    before_sum_.add(distance(dtype, before_.data, reference_.dtype, reference_.data, i));
    after_sum_.add(distance(dtype, after_.data, reference_.dtype, reference_.data, i));
    check_.largest_difference =
        std::max(check_.largest_difference, distance(dtype, after_.data, dtype, before_.data, i));
    if (is_fp8(dtype)) count_steps(i, representable);
  }

  static bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

  /// At the end of the dtype's range one rounding makes a number infinite. Applies the rule for the
  /// whole output, with infinity as the next number. Rejects NaN.
  [[nodiscard]] bool close(double before, double after, double representable) const {
    const DType dtype = check_.dtype;
    const double truth = beyond(dtype, representable);
    const double allowed = limits_.factor * std::fabs(beyond(dtype, before) - truth) +
                           limits_.ulps * ulp(dtype, std::nextafter(truth, 0));
    return std::fabs(beyond(dtype, after) - truth) <= allowed;
  }

  void count_steps(std::int64_t i, double representable) {
    const std::int64_t steps =
        std::abs(order_of(check_.dtype, after_.data, i) - order_of(check_.dtype, before_.data, i));
    if (steps > 1) ++check_.more_steps;
    if (steps == 1 && load(check_.dtype, after_.data, i) != representable) ++check_.one_step;
  }

  OutputCheck& check_;
  const NumericLimits& limits_;
  TensorView reference_, before_, after_;
  MeanSquare reference_sum_, before_sum_, after_sum_;
};

std::string reason_of(const OutputCheck& check, const NumericLimits& limits) {
  if (check.non_finite > 0)
    return fmt::format("{} of {} elements are NaN or infinite on one side only", check.non_finite,
                       check.count);
  if (check.count > 0 && check.left_out == check.count)
    return fmt::format("none of its {} elements is finite", check.count);
  if (!is_float(check.dtype)) {
    return check.largest_difference == 0
               ? ""
               : fmt::format("values differ by up to {}", check.largest_difference);
  }
  if (check.more_steps > 0)
    return fmt::format("{} of {} elements are more than one fp8 step apart", check.more_steps,
                       check.count);
  if (static_cast<double>(check.one_step) > limits.one_step * static_cast<double>(check.count)) {
    return fmt::format("{} of {} elements are one fp8 step apart, more than {} %", check.one_step,
                       check.count, 100 * limits.one_step);
  }
  // A NaN fails.
  if (!(check.after_error <= check.bound))
    return fmt::format("the RMS error is {:.4g}, more than {:.4g}", check.after_error, check.bound);
  return "";
}

}  // namespace

bool NumericReport::passed() const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const OutputCheck& output) { return output.passed; });
}

std::string output_name(const Graph& graph, std::size_t output) {
  const std::size_t returned = graph.returned_count();
  return std::string(graph.value_name(
      output < returned ? graph.outputs()[output] : graph.written_inputs()[output - returned]));
}

OutputCheck check_output(const std::string& name, const TensorView& reference,
                         const TensorView& before, const TensorView& after,
                         const NumericLimits& limits) {
  OutputCheck check;
  check.name = name;
  check.dtype = before.dtype;
  check.count = before.count();
  if (after.dtype != before.dtype || after.extents != before.extents ||
      reference.extents != before.extents) {
    check.reason = "its dtype or shape changed";
    return check;
  }
  Comparison(check, limits, reference, before, after).run();
  check.bound =
      limits.factor * check.before_error + limits.ulps * ulp(check.dtype, check.reference_rms);
  check.reason = reason_of(check, limits);
  check.passed = check.reason.empty();
  return check;
}

OutputCheck check_settled(const std::string& name, const TensorView& plain,
                          const TensorView& settled, const TensorView& before,
                          const TensorView& after, double leeway, const NumericLimits& limits) {
  if (!is_float(before.dtype) || is_fp8(before.dtype)) {
    // The unrewritten run may have resolved the ties as `plain` does.
    Tensor nearest(before.dtype, before.extents);
    if (settled.dtype == before.dtype)
      std::memcpy(nearest.data(), settled.data, settled.bytes());
    else
      for (std::int64_t i = 0; i < settled.count(); ++i)
        store(before.dtype, nearest.data(), i, load(settled.dtype, settled.data, i));
    return check_output(name, settled, nearest.view(), after, limits);
  }
  OutputCheck check = check_output(name, settled, before, after, limits);
  if (after.dtype != before.dtype || after.extents != before.extents) return check;
  check.before_error =
      std::min(check.before_error, check_output(name, plain, before, after, limits).before_error);
  check.bound = limits.factor * (check.before_error + leeway) +
                limits.ulps * ulp(check.dtype, check.reference_rms);
  check.reason = reason_of(check, limits);
  check.passed = check.reason.empty();
  return check;
}

std::string print(const Tie& tie) {
  const std::string where =
      tie.count > 1 ? fmt::format("{} elements", tie.count) : fmt::format("place {}", tie.place);
  return fmt::format("{} at {}, {}: margin {:.3g} is below rounding {:.3g}", tie.op, tie.node,
                     where, tie.margin, tie.rounding);
}

NumericReport check_outputs(const Graph& original, std::span<const Tensor> reference,
                            std::span<const Tensor> before, std::span<const Tensor> after,
                            const NumericLimits& limits) {
  PW_ASSERT(reference.size() == before.size() && before.size() == after.size(),
            "runs of one graph have as many outputs");
  NumericReport report;
  for (std::size_t i = 0; i < before.size(); ++i) {
    report.outputs.push_back(check_output(output_name(original, i), reference[i].view(),
                                          before[i].view(), after[i].view(), limits));
  }
  return report;
}

Result<Yardstick> run_yardstick(const Graph& original, Backend& backend, std::span<Weights> ranks,
                                const Step& step, const Symbols& symbols, CheckCaches* caches) {
  Step own = step;
  own.cache = caches == nullptr ? nullptr : &caches->before;
  auto before = PW_TRY(run_whole(original, backend, ranks, own, symbols));
  own.cache = caches == nullptr ? nullptr : &caches->reference;
  auto reference = PW_TRY(run_reference(original, ranks, own, symbols, Precision::stated));
  return Yardstick{std::move(before), std::move(reference)};
}

std::vector<NumericReport> check_outputs(const Graph& original, const Yardstick& yardstick,
                                         const RankOutputs& after, const NumericLimits& limits) {
  std::vector<NumericReport> reports;
  for (std::size_t rank = 0; rank < after.size(); ++rank)
    reports.push_back(check_outputs(original, yardstick.reference[rank], yardstick.before[rank],
                                    after[rank], limits));
  return reports;
}

Result<std::vector<NumericReport>> check_against(const Graph& original, Backend& backend,
                                                 std::span<Weights> ranks, const Step& step,
                                                 const RankOutputs& after, const Symbols& symbols,
                                                 const NumericLimits& limits, CheckCaches* caches) {
  const auto yardstick = run_yardstick(original, backend, ranks, step, symbols, caches);
  if (!yardstick) return tl::unexpected(yardstick.error());
  return check_outputs(original, *yardstick, after, limits);
}

Result<NumericReport> check_against(const Graph& original, Backend& backend, Weights& weights,
                                    const Step& step, std::span<const Tensor> after,
                                    const Symbols& symbols, const NumericLimits& limits) {
  const RankOutputs alone = {{after.begin(), after.end()}};
  auto reports = PW_TRY(
      check_against(original, backend, std::span(&weights, 1), step, alone, symbols, limits));
  return std::move(reports.front());
}

}  // namespace pw
