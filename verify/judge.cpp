#include "verify/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tensor/numerics.hpp"
#include "verify/numeric.hpp"

namespace pw {
namespace {

/// One output of both runs.
class Output {
 public:
  Output(const SampleRuns& runs, std::size_t number)
      : before(runs.before[number]),
        after(runs.after[number]),
        dtype(before.dtype()),
        index(number),
        exact_(runs.exact_before.empty() || runs.exact_after.empty() ? nullptr
                                                                     : &runs.exact_before[number]),
        exact_after_(exact_ == nullptr ? nullptr : &runs.exact_after[number]) {}

  /// Any NaN equals any other.
  [[nodiscard]] bool same(std::int64_t i) const {
    const auto size = static_cast<std::size_t>(size_of(dtype));
    const auto offset = static_cast<std::size_t>(i) * size;
    return std::memcmp(before.data() + offset, after.data() + offset, size) == 0 ||
           (std::isnan(left(i)) && std::isnan(right(i)));
  }
  [[nodiscard]] double left(std::int64_t i) const { return load(dtype, before.data(), i); }
  [[nodiscard]] double right(std::int64_t i) const { return load(dtype, after.data(), i); }
  [[nodiscard]] double ulps(std::int64_t i) const {
    return std::fabs(static_cast<double>(order_of(dtype, before.data(), i)) -
                     static_cast<double>(order_of(dtype, after.data(), i)));
  }
  [[nodiscard]] bool has_exact() const { return exact_ != nullptr; }
  [[nodiscard]] double exact_left(std::int64_t i) const {
    return load(DType::f64, exact_->data(), i);
  }
  [[nodiscard]] double exact_right(std::int64_t i) const {
    return load(DType::f64, exact_after_->data(), i);
  }

  const Tensor &before, &after;
  DType dtype;
  std::size_t index;

 private:
  const Tensor *exact_, *exact_after_;
};

class Judge {
 public:
  Judge(const Graph& original, const SampleRuns& runs) : original_(original), runs_(runs) {}

  Judgement run() {
    for (std::size_t i = 0; i < runs_.before.size() && going(); ++i) output(i);
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool going() const { return out_.verdict != RuleVerdict::refuted; }
  [[nodiscard]] bool finite() const {
    return runs_.contents != Contents::infinite && runs_.contents != Contents::nan;
  }

  void output(std::size_t i) {
    const Tensor &before = runs_.before[i], &after = runs_.after[i];
    if (before.dtype() != after.dtype() || before.extents() != after.extents())
      return out_.refute(
          fmt::format("output {} changes its dtype or shape", output_name(original_, i)), true);
    const Output both(runs_, i);
    const std::int64_t count = before.view().count();
    if (finite() && both.has_exact()) same_function(both, count);
    for (std::int64_t k = 0; k < count && going(); ++k)
      if (!both.same(k)) element(both, k);
  }

  /// Without rounding both sides are the same function: the reference runs agree up to their own
  /// roundings.
  void same_function(const Output& both, std::int64_t count) {
    for (std::int64_t k = 0; k < count && going(); ++k) {
      const double a = both.exact_left(k), b = both.exact_right(k);
      if (a == b || !std::isfinite(a) || !std::isfinite(b)) continue;
      const SampleBounds* bounds = runs_.bounds ? runs_.bounds(true) : nullptr;
      if (bounds == nullptr) return;
      if (std::fabs(a - b) <= allowed(*bounds, both, k, 0)) continue;
      // The range of f64 is finite too.
      const auto at = static_cast<std::size_t>(k);
      if (bounds->before[both.index].reach[at] != RangeState::inside ||
          bounds->after[both.index].reach[at] != RangeState::inside)
        continue;
      out_.refute(fmt::format("{}; without rounding they differ by {:.4g}", shown(both, k),
                              std::fabs(a - b)),
                  true);
    }
  }

  void element(const Output& both, std::int64_t k) {
    const double a = both.left(k), b = both.right(k);
    if (a == b) return is_float(both.dtype) ? zero_signs(both, k) : out_.refute(shown(both, k));
    const bool numbers = std::isfinite(a) && std::isfinite(b);
    const SampleBounds* bounds = runs_.bounds ? runs_.bounds(false) : nullptr;
    if (bounds == nullptr || !is_float(both.dtype)) return unexplained(both, k, bounds);
    const double slack = kSmallSteps * std::max(smallest_of(both.dtype), smallest_input_);
    if (numbers && std::fabs(a - b) <= allowed(*bounds, both, k, slack))
      return out_.rounds(both.ulps(k));
    unexplained(both, k, bounds);
  }

  /// Classifies a difference that rounding does not explain: a sum or a step may have left the
  /// range.
  void unexplained(const Output& both, std::int64_t k, const SampleBounds* bounds) {
    const double a = both.left(k), b = both.right(k);
    if (!is_float(both.dtype) && bounds != nullptr && finite() &&
        std::fabs(a - b) <= allowed(*bounds, both, k, 0))
      return out_.rounds(std::fabs(a - b));
    if (!finite() && bounds != nullptr && is_rounding(*bounds, both, k))
      return out_.rounds(std::fabs(a - b));
    if (!finite()) return differs_for_these(both, k);
    if (bounds == nullptr) return out_.refute(shown(both, k));
    const auto at = static_cast<std::size_t>(k);
    const RangeState left = bounds->before[both.index].reach[at],
                     right = bounds->after[both.index].reach[at];
    switch (std::max(left, right)) {
      case RangeState::inside: return out_.refute(shown(both, k));
      case RangeState::partial:
        if (left == right) return out_.rounds(1);
        break;
      case RangeState::inner: return out_.rounds(1);
      case RangeState::left:
        if (std::fabs(a - b) <= kMostLostSteps * smallest_of(both.dtype))
          return out_.rounds(both.ulps(k));
        break;
    }
    out_.overflows(shown(both, k));
  }

  /// Checks that decisions such as comparisons agree on both sides without rounding. If not, a
  /// sample differs in more than its infinities and NaNs.
  [[nodiscard]] static bool is_rounding(const SampleBounds& bounds, const Output& both,
                                        std::int64_t k) {
    if (is_float(both.dtype)) return false;
    const auto exact = [&](const BoundedOutputs& side) {
      return load(DType::f64, side[both.index].exact.data(), k);
    };
    return exact(bounds.before) == exact(bounds.after);
  }

  [[nodiscard]] static double allowed(const SampleBounds& bounds, const Output& both,
                                      std::int64_t k, double slack) {
    constexpr double kOwnRounding = 1.01;  // of the bounds, which are computed in f64
    const auto at = static_cast<std::size_t>(k);
    const double sum = bounds.before[both.index].error[at] + bounds.after[both.index].error[at];
    return kOwnRounding * sum + slack;
  }

  /// Applies to exact zeros, not to values that rounding made zero.
  void zero_signs(const Output& both, std::int64_t k) {
    if (!both.has_exact()) return;  // the finite samples decide
    if (both.exact_left(k) == 0)
      differs_for({false, false, true}, both, k);
    else
      out_.rounds(1);
  }

  void differs_for_these(const Output& both, std::int64_t k) {
    differs_for({runs_.contents == Contents::nan, runs_.contents == Contents::infinite, false},
                both, k);
  }
  void differs_for(const Specials& specials, const Output& both, std::int64_t k) {
    out_.differs_for(specials, out_.reason.empty() ? shown(both, k) : std::string());
  }

  /// Describes the element and the inputs at the same place.
  [[nodiscard]] std::string shown(const Output& both, std::int64_t at) const {
    const Extents& extents = both.before.extents();
    std::string text =
        fmt::format("{}{} is {} before and {} after", output_name(original_, both.index),
                    place(extents, at), number(both.before, at), number(both.after, at));
    std::vector<std::string> with;
    for (const auto& [name, tensor] : runs_.inputs) {
      if (tensor.extents() == extents)
        with.push_back(fmt::format("{} = {}", name, number(tensor, at)));
      else if (tensor.view().count() == 1)
        with.push_back(fmt::format("{} = {}", name, number(tensor, 0)));
    }
    if (!with.empty()) text += fmt::format(", where {}", fmt::join(with, ", "));
    return text + fmt::format(" (of {})", name(runs_.contents));
  }
  static std::string number(const Tensor& tensor, std::int64_t at) {
    const double value = load(tensor.dtype(), tensor.data(), at);
    if (std::isnan(value)) return "nan";  // without its sign, which is arbitrary
    if (is_float(tensor.dtype())) return fmt::format("{:.9g}", value);
    if (tensor.dtype() != DType::i64) return fmt::format("{:.0f}", value);
    std::int64_t whole = 0;
    std::memcpy(&whole, tensor.data() + at * 8, sizeof(whole));
    return fmt::format("{}", whole);
  }
  static std::string place(const Extents& extents, std::int64_t at) {
    std::vector<std::int64_t> index(extents.size());
    for (std::size_t d = extents.size(); d-- > 0; at /= extents[d]) index[d] = at % extents[d];
    return index.empty() ? "" : fmt::format("[{}]", fmt::join(index, ", "));
  }

  /// Returns the smallest positive number of the narrowest dtype among the inputs: results cannot
  /// be more accurate.
  [[nodiscard]] static double smallest_among(const SampleRuns& runs) {
    double smallest = 0;
    for (const auto& [name, tensor] : runs.inputs)
      if (tensor.dtype() == DType::bf16 || tensor.dtype() == DType::f16)
        smallest = std::max(smallest, smallest_of(tensor.dtype()));
    return smallest;
  }

  static constexpr double kSmallSteps = 16;  ///< of subnormal numbers, that roundings add up to

  const Graph& original_;
  const SampleRuns& runs_;
  double smallest_input_ = smallest_among(runs_);
  Judgement out_;
};

}  // namespace

Judgement judge(const Graph& original, const SampleRuns& runs) {
  return Judge(original, runs).run();
}

}  // namespace pw
