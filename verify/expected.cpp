#include "verify/expected.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tensor/numerics.hpp"

namespace pw {

Tolerance usual_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return {1e-7, 1e-7};
    case DType::f32: return {1.3e-6, 1e-5};
    case DType::f16: return {1e-3, 1e-5};
    case DType::bf16: return {1.6e-2, 1e-5};
    case DType::f8e4m3: return {0.125, 1e-2};
    case DType::f8e5m2: return {0.25, 1e-2};
    case DType::b8:
    case DType::u8:
    case DType::i8:
    case DType::i32:
    case DType::i64: break;
  }
  return {0, 0};
}

namespace {

/// The difference that an element may have, by its value.
struct Allowed {
  double absolute, relative;
};

Allowed allowed_between(DType got, DType expected, const Tolerance& tolerance) {
  const Tolerance own = usual_tolerance(got), other = usual_tolerance(expected);
  return {tolerance.absolute >= 0 ? tolerance.absolute : std::max(own.absolute, other.absolute),
          tolerance.relative >= 0 ? tolerance.relative : std::max(own.relative, other.relative)};
}

/// Measures everything except the verdict; sets the reason if the output cannot pass.
ExpectedCheck measured(const std::string& name, const TensorView& got, const TensorView& expected,
                       const Allowed& allowed) {
  ExpectedCheck out;
  out.name = name;
  out.dtype = got.dtype;
  out.expected_dtype = expected.dtype;
  if (got.extents != expected.extents) {
    out.reason = fmt::format("its shape is [{}], expected [{}]", fmt::join(got.extents, ", "),
                             fmt::join(expected.extents, ", "));
    return out;
  }
  out.count = got.count();
  double squares = 0, errors = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < out.count; ++i) {
    const double a = load(got.dtype, got.data, i), e = load(expected.dtype, expected.data, i);
    if (!std::isfinite(a) || !std::isfinite(e)) {
      out.not_finite += a == e || (std::isnan(a) && std::isnan(e)) ? 0 : 1;
      continue;
    }
    const double gap = distance(got.dtype, got.data, expected.dtype, expected.data, i);
    out.largest = std::max(out.largest, gap);
    out.outside += gap > allowed.absolute + allowed.relative * std::fabs(e) ? 1 : 0;
    squares += e * e;
    errors += gap * gap;
    ++finite;
  }
  if (finite > 0) {
    out.rms = std::sqrt(squares / static_cast<double>(finite));
    out.rms_error = std::sqrt(errors / static_cast<double>(finite));
  }
  if (out.not_finite > 0)
    out.reason = fmt::format("{} elements are NaN or infinite on one side only", out.not_finite);
  return out;
}

bool is_exact(DType dtype) {
  const Tolerance usual = usual_tolerance(dtype);
  return usual.relative == 0 && usual.absolute == 0;
}

}  // namespace

ExpectedCheck check_expected(const std::string& name, const TensorView& got,
                             const TensorView& expected, const Tolerance& tolerance) {
  const Allowed allowed = allowed_between(got.dtype, expected.dtype, tolerance);
  ExpectedCheck out = measured(name, got, expected, allowed);
  if (out.reason.empty() && out.outside > 0)
    out.reason = fmt::format("{} of {} elements differ by more than {:.3g} + {:.3g} of the value",
                             out.outside, out.count, allowed.absolute, allowed.relative);
  out.passed = out.reason.empty();
  return out;
}

ExpectedCheck check_expected(const std::string& name, const TensorView& got,
                             const TensorView& expected, const OutputYardstick& yardstick,
                             const NumericLimits& limits) {
  if (is_exact(got.dtype)) return check_expected(name, got, expected, Tolerance{0, 0});
  const Allowed allowed = allowed_between(got.dtype, expected.dtype, {});
  ExpectedCheck out = measured(name, got, expected, allowed);
  const OutputCheck rounding =
      check_output(name, yardstick.reference, yardstick.before, yardstick.before, limits);
  const double step = is_exact(expected.dtype)
                          ? ulp(got.dtype, out.rms)
                          : std::max(ulp(got.dtype, out.rms), ulp(expected.dtype, out.rms));
  out.bound = (1 + limits.factor) * rounding.before_error + limits.ulps * step;
  if (out.reason.empty() && !(out.rms_error <= out.bound))
    out.reason = fmt::format(
        "the RMS of the difference is {:.3g}, at most {:.3g} is allowed; the largest is "
        "{:.3g}, and {} of {} elements differ by more than {:.3g} + {:.3g} of the value",
        out.rms_error, out.bound, out.largest, out.outside, out.count, allowed.absolute,
        allowed.relative);
  out.passed = out.reason.empty();
  return out;
}

}  // namespace pw
