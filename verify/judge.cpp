// Exports judge, has_sums.
#include "verify/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/numerics.hpp"
#include "verify/numeric.hpp"

namespace pw {
namespace {

constexpr double kApart = std::numeric_limits<double>::infinity();
constexpr double kNearEnd = 1024;  // terms of a sum may be so much larger than the sum

/// How two elements differ.
struct Apart {
  double ulps = 0;         // of finite elements; kApart for other dtypes
  bool special = false;    // NaN or infinity on one side, or infinities of both signs
  bool zero_sign = false;  // only this
  bool beyond = false;     // special: before is at the end of the dtype's range, or beyond
};

class Output {
 public:
  Output(const Tensor& before, const Tensor& after) : before_(before), after_(after) {}

  [[nodiscard]] Apart at(std::int64_t i) const {
    const DType dtype = before_.dtype();
    const auto size = static_cast<std::size_t>(size_of(dtype));
    const auto offset = static_cast<std::size_t>(i) * size;
    if (std::memcmp(before_.data() + offset, after_.data() + offset, size) == 0) return {};
    if (!is_float(dtype)) return {kApart, false, false, false};
    const double a = load(dtype, before_.data(), i), b = load(dtype, after_.data(), i);
    if (std::isnan(a) && std::isnan(b)) return {};
    if (!std::isfinite(a) || !std::isfinite(b))
      return {0, true, false, !(std::fabs(a) < format_of(dtype).largest / kNearEnd)};
    if (a == b) return {0, false, true, false};
    const auto steps = static_cast<double>(order_of(dtype, before_.data(), i)) -
                       static_cast<double>(order_of(dtype, after_.data(), i));
    return {std::fabs(steps), false, false, false};
  }

 private:
  const Tensor &before_, &after_;
};

class Judge {
 public:
  Judge(const Graph& original, const SampleRuns& runs, bool sums, const JudgeOptions& options)
      : original_(original), runs_(runs), sums_(sums), options_(options) {}

  Judgement run() {
    for (std::size_t i = 0; i < runs_.before.size() && out_.verdict != RuleVerdict::refuted; ++i)
      output(i);
    return out_;
  }

 private:
  [[nodiscard]] bool finite() const {
    return runs_.contents != Contents::infinite && runs_.contents != Contents::nan;
  }

  void output(std::size_t i) {
    const Tensor &before = runs_.before[i], &after = runs_.after[i];
    if (before.dtype() != after.dtype() || before.extents() != after.extents())
      return out_.refute(
          fmt::format("output {} changes its dtype or shape", output_name(original_, i)), true);
    if (finite() && !runs_.exact_before.empty() && is_float(before.dtype())) same_function(i);
    if (out_.verdict == RuleVerdict::refuted) return;
    const Output both(before, after);
    const std::int64_t count = before.view().count();
    std::optional<std::int64_t> far;
    double farthest = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const Apart apart = both.at(k);
      if (apart.zero_sign) zero_signs(i, k);
      // A sum of finite numbers leaves the range of its dtype: whether it does, and where to, is a
      // matter of the order of its terms.
      if (apart.beyond && sums_ && finite()) {
        out_.rounds(1);
        continue;
      }
      const bool differs = apart.special || apart.ulps == kApart;
      if (differs && finite()) return out_.refute(shown(i, k));
      if (differs) differs_for_these(i, k);
      if (apart.ulps == 0 || differs) continue;
      if (apart.ulps <= options_.ulps) {
        out_.rounds(apart.ulps);
        continue;
      }
      if (!far) far = k;
      farthest = std::max(farthest, apart.ulps);
    }
    if (far) judge_far(i, *far, farthest);
  }

  /// Of what is zero, and not of what became zero by rounding.
  void zero_signs(std::size_t i, std::int64_t at) {
    if (runs_.exact_before.empty()) return;  // the finite samples tell
    if (load(DType::f64, runs_.exact_before[i].data(), at) == 0)
      differs_for({false, false, true}, i, at);
    else
      out_.rounds(1);
  }

  void judge_far(std::size_t i, std::int64_t at, double ulps) {
    if (!finite()) {
      if (!sums_) differs_for_these(i, at);
      return;
    }
    if (!sums_ || runs_.exact_before.empty() || !as_close(i)) return out_.refute(shown(i, at));
    out_.rounds(ulps);
  }

  void differs_for_these(std::size_t i, std::int64_t at) {
    differs_for({runs_.contents == Contents::nan, runs_.contents == Contents::infinite, false}, i,
                at);
  }
  void differs_for(const Specials& specials, std::size_t i, std::int64_t at) {
    out_.differs_for(specials, out_.reason.empty() ? shown(i, at) : std::string());
  }

  /// The largest error against the reference is not much larger after than before. The reference is
  /// f64: of an f64 output it knows no more than the output itself.
  [[nodiscard]] bool as_close(std::size_t i) const {
    const Tensor &exact = runs_.exact_before[i], &before = runs_.before[i], &after = runs_.after[i];
    double error_before = 0, error_after = 0, magnitude = 0;
    const std::int64_t count = exact.view().count();
    for (std::int64_t k = 0; k < count; ++k) {
      const double truth = load(DType::f64, exact.data(), k),
                   a = load(before.dtype(), before.data(), k),
                   b = load(before.dtype(), after.data(), k);
      if (!std::isfinite(truth) || !std::isfinite(a) || !std::isfinite(b)) continue;
      magnitude = std::max(magnitude, std::fabs(truth));
      error_before = std::max(error_before, std::fabs(a - truth));
      error_after = std::max(error_after, std::fabs(b - truth));
    }
    return error_after <= options_.error * error_before + options_.exact * magnitude;
  }

  /// The reference rounds to fp8 only, so that a differing order of operations may move few
  /// elements across a boundary.
  void same_function(std::size_t i) {
    const Tensor &a = runs_.exact_before[i], &b = runs_.exact_after[i];
    double largest = 0, magnitude = 0;
    std::int64_t apart = 0, at = 0;
    const std::int64_t count = a.view().count();
    for (std::int64_t k = 0; k < count; ++k) {
      const double x = load(DType::f64, a.data(), k), y = load(DType::f64, b.data(), k);
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      magnitude = std::max(magnitude, std::fabs(x));
      if (x == y) continue;
      ++apart;
      if (std::fabs(x - y) > largest) at = k;
      largest = std::max(largest, std::fabs(x - y));
    }
    const DType dtype = runs_.before[i].dtype();
    const bool fp8 = dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
    const bool few = fp8 && apart * 100 <= count && largest <= ulp(dtype, magnitude);
    if (largest <= options_.exact * magnitude || few) return;
    out_.refute(fmt::format("{}; without rounding they are {:.4g} apart", shown(i, at), largest),
                true);
  }

  /// The element, and the inputs at the same place.
  [[nodiscard]] std::string shown(std::size_t i, std::int64_t at) const {
    const Tensor &before = runs_.before[i], &after = runs_.after[i];
    std::string text =
        fmt::format("{}{} is {} before and {} after", output_name(original_, i),
                    place(before.extents(), at), number(before, at), number(after, at));
    std::vector<std::string> with;
    for (const auto& [name, tensor] : runs_.inputs)
      if (tensor.extents() == before.extents())
        with.push_back(fmt::format("{} = {}", name, number(tensor, at)));
    if (!with.empty()) text += fmt::format(", where {}", fmt::join(with, ", "));
    return text + fmt::format(" (of {})", name(runs_.contents));
  }
  static std::string number(const Tensor& tensor, std::int64_t at) {
    return fmt::format("{:.9g}", load(tensor.dtype(), tensor.data(), at));
  }
  static std::string place(const Extents& extents, std::int64_t at) {
    std::vector<std::int64_t> index(extents.size());
    for (std::size_t d = extents.size(); d-- > 0; at /= extents[d]) index[d] = at % extents[d];
    return index.empty() ? "" : fmt::format("[{}]", fmt::join(index, ", "));
  }

  const Graph& original_;
  const SampleRuns& runs_;
  bool sums_;
  const JudgeOptions& options_;
  Judgement out_;
};

}  // namespace

bool has_sums(const Graph& graph) {
  static const std::set<std::string_view> kSums = {"add",
                                                   "sub",
                                                   "sum",
                                                   "mean",
                                                   "prod",
                                                   "cumsum",
                                                   "cumprod",
                                                   "index_put",
                                                   "mm",
                                                   "addmm",
                                                   "bmm",
                                                   "scaled_mm",
                                                   "block_scaled_mm",
                                                   "all_reduce",
                                                   "unified_attention",
                                                   "unified_mla_attention",
                                                   "scaled_attention",
                                                   "scaled_attention_gradient",
                                                   "convolution",
                                                   "transposed_convolution",
                                                   "convolution_weight_gradient",
                                                   "grouped_mm",
                                                   "avg_pool",
                                                   "adaptive_avg_pool",
                                                   "reduce_scatter"};
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node))
    if (kSums.contains(graph.op_of(node).name)) return true;
  return false;
}

Judgement judge(const Graph& original, const SampleRuns& runs, bool sums,
                const JudgeOptions& options) {
  return Judge(original, runs, sums, options).run();
}

}  // namespace pw
