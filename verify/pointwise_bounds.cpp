// Interval bounds of pointwise functions. A monotone function attains its extremes at the ends of
// the operands' intervals, so evaluating all corners suffices; step functions and casts to fp8 are
// treated separately. The rounding of the step itself is added. Invariant: infinity means that
// nothing is known.
#include "verify/pointwise_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"
#include "graph/ops/scalar_functions.hpp"
#include "tensor/numerics.hpp"

namespace pw {
namespace {

using P = Primitive;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kFunctionSteps = 8;  // largest error of an engine's exp, log, …, in roundings

template <class F, int operands>
double number_function(const double* x) {
  if constexpr (operands == 1) return F::of(x[0]);
  if constexpr (operands == 2) return F::of(x[0], x[1]);
  if constexpr (operands == 3) return F::of(x[0], x[1], x[2]);
}
template <class F, int operands>
double integer_function(const double* x) {
  const auto whole = [](double number) {
    return std::fabs(number) < 0x1p62 ? static_cast<std::int64_t>(number) : std::int64_t{0};
  };
  if constexpr (operands == 1)
    return static_cast<double>(F::of(whole(x[0])));
  else
    return static_cast<double>(F::of(whole(x[0]), whole(x[1])));
}
double same(const double* x) { return x[0]; }

/// Returns true if a result of 0 is due to underflow, not to the function.
bool vanished(Primitive op, const PointwiseElement& e) {
  if (op == P::mul) return e.x[0] != 0 && e.x[1] != 0;
  return op == P::exp || (among(op, {P::div, P::pow}) && e.x[0] != 0);
}

#define PW_NUMBERS(name, operands) {P::name, number_function<scalar::name, operands>, operands},
#define PW_INTEGERS(name, operands) {P::name, integer_function<scalar::name, operands>, operands},
#define PW_REALS(name) {P::name, number_function<scalar::name, 1>, 1},
constexpr PointwiseFunction kFunctions[] = {PW_NUMBER_PRIMITIVES(PW_NUMBERS) PW_INTEGER_PRIMITIVES(
    PW_INTEGERS) PW_REAL_PRIMITIVES(PW_REALS){P::cast, same, 1}};
#undef PW_NUMBERS
#undef PW_INTEGERS
#undef PW_REALS

using Way = PointwiseWay;

Way way_of(Primitive op) {
  if (among(op, {P::neg, P::abs, P::maximum, P::minimum, P::floor, P::ceil, P::trunc, P::round,
                 P::select, P::remainder, P::fmod}))
    return Way::exact;
  if (among(op, {P::add, P::sub, P::mul, P::div, P::sqrt, P::cast})) return Way::rounded;
  if (among(op, {P::eq, P::ne, P::lt, P::le, P::gt, P::ge})) return Way::compared;
  if (among(op, {P::bitwise_and, P::bitwise_or, P::bitwise_xor, P::bitwise_not})) return Way::bits;
  return Way::function;
}

bool is_sum(Primitive op) { return among(op, {P::add, P::sub}); }
/// Ops whose result is a sum if their operand is one.
bool keeps_sum(Primitive op) { return is_sum(op) || among(op, {P::neg, P::cast}); }

/// The end of the function's domain.
bool has_domain(Primitive op) {
  return among(
      op, {P::log, P::log2, P::log10, P::log1p, P::rsqrt, P::asin, P::acos, P::acosh, P::atanh});
}

/// Returns true if an infinite or undefined result of finite operands is the function's own.
bool is_pole(Primitive op, const PointwiseElement& e) {
  if (std::isnan(e.result) || has_domain(op)) return true;
  return (op == P::div && e.x[1] == 0) || (op == P::pow && e.x[0] == 0);
}

}  // namespace

bool is_fp8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? kUnbounded : d;
}

double known_error(double before, double error) {
  return std::isnan(error) || (!std::isfinite(before) && error > 0) ? kUnbounded : error;
}

double rounded_error(DType dtype, double before, double error) {
  if (error == 0 || error == kUnbounded) return error;
  const double exact = rounded(dtype, before);
  return std::max(distance(rounded(dtype, before - error), exact),
                  distance(rounded(dtype, before + error), exact));
}

namespace {

const PointwiseFunction& function_of(Primitive op) {
  const auto found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                  [&](const PointwiseFunction& f) { return f.op == op; });
  PW_ASSERT(found != std::end(kFunctions), "every pointwise op has a function");
  return *found;
}

/// The dtype in which an engine computes a step.
DType computed_in(const std::vector<DType>& from, DType to) {
  const auto is = [](DType wanted) { return [wanted](DType dtype) { return dtype == wanted; }; };
  if (std::none_of(from.begin(), from.end(), is(DType::f64))) return DType::f32;
  if (is_float(to)) return to == DType::f64 ? DType::f64 : DType::f32;
  return std::all_of(from.begin(), from.end(), is(DType::f64)) ? DType::f64 : DType::f32;
}

/// Returns true if a number is beyond f32, at either end of its range.
bool leaves_f32(double x) {
  static const double kLargest = format_of(DType::f32).largest;
  static const double kSmallest = std::ldexp(1.0, format_of(DType::f32).smallest);
  const double size = std::fabs(x);
  return std::isfinite(size) && size != 0 && (size > kLargest || size < kSmallest);
}

}  // namespace

PointwiseStep::PointwiseStep(Primitive op, const std::vector<DType>& from, DType to, double unit,
                             bool exact)
    : function_(function_of(op)),
      to_(to),
      common_(computed_in(from, to)),
      way_(way_of(op)),
      unit_(unit),
      inner_unit_(exact ? unit_of(DType::f64) : std::min(unit_of(common_), unit)),
      is_sum_(pw::is_sum(op)),
      keeps_sum_(pw::keeps_sum(op)),
      is_float_(is_float(to)),
      is_fp8_cast_(is_fp8(to) && op == P::cast),
      widens_(op == P::cast &&
              (!is_float(from[0]) || (!exact && unit_of(from[0]) >= unit_of(to)))) {
  const FloatFormat format = format_of(exact && !is_fp8(to) ? DType::f64 : to);
  largest_ = format.largest;
  smallest_normal_ = std::ldexp(1.0, format.smallest);
  if (is_fp8(to)) smallest_fp8_ = smallest_of(to) / 2;
  for (const DType dtype : from) {
    Operand& operand = from_.emplace_back();
    operand.dtype = dtype;
    operand.largest = format_of(exact ? DType::f64 : dtype).largest;
    operand.rounds = op != P::cast && way_ != Way::compared &&
                     (dtype == DType::f64 || dtype == DType::i64 || dtype == DType::i32);
    operand.may_overflow = !exact && op != P::cast && dtype == DType::f64 && common_ != DType::f64;
  }
}

/// The largest change of the result if all operands move within their errors.
double PointwiseStep::spread(const PointwiseElement& e) const {
  const Primitive op = function_.op;
  const double total = e.error[0] + (function_.operands > 1 ? e.error[1] : 0) +
                       (function_.operands > 2 ? e.error[2] : 0);
  if (total == 0) return 0;
  if (std::isnan(total) || std::isinf(total)) {
    return way_ == Way::compared || to_ == DType::b8 ? 1 : kUnbounded;
  }
  if (way_ == Way::compared) return std::fabs(e.x[0] - e.x[1]) <= e.error[0] + e.error[1] ? 1 : 0;
  if (is_sum_) return e.error[0] + e.error[1];
  if (among(op, {P::neg, P::abs})) return e.error[0];
  if (op == P::mul)
    return std::fabs(e.x[0]) * e.error[1] + std::fabs(e.x[1]) * e.error[0] +
           e.error[0] * e.error[1];
  if (among(op, {P::sin, P::cos})) return std::min(e.error[0], 2.0);
  if (op == P::select) {
    const double chosen = e.x[0] != 0 ? e.error[1] : e.error[2];
    return e.error[0] == 0 ? chosen : distance(e.x[1], e.x[2]) + std::max(e.error[1], e.error[2]);
  }
  return at_ends(e);
}

double PointwiseStep::at_ends(const PointwiseElement& e) const {
  const Primitive op = function_.op;
  const bool whole = way_ == Way::bits || op == P::div;
  if (whole && !is_float_ && to_ != DType::b8) return kUnbounded;
  if (op == P::div && std::fabs(e.x[1]) <= e.error[1]) return kUnbounded;
  if (op == P::cast && to_ == DType::b8) return std::fabs(e.x[0]) <= e.error[0] ? 1 : 0;
  if (among(op, {P::fmod, P::remainder})) {
    const double low = std::floor((e.x[0] - e.error[0]) / (std::fabs(e.x[1]) + e.error[1])),
                 high = std::floor((e.x[0] + e.error[0]) / (std::fabs(e.x[1]) - e.error[1]));
    if (low != high) return std::fabs(e.x[1]) + e.error[1];
  }
  double most = 0;
  for (int ends = 0; ends < 1 << function_.operands; ++ends) {
    std::array<double, 3> x = e.x;
    for (int i = 0; i < function_.operands; ++i) {
      const auto k = static_cast<std::size_t>(i);
      x[k] += (ends >> i & 1) != 0 ? e.error[k] : -e.error[k];
      if (from_[k].dtype == DType::b8) x[k] = std::clamp(x[k], 0.0, 1.0);
      if (op == P::sqrt) x[k] = std::max(x[k], 0.0);
    }
    double y = function_.of(x.data());
    if (op == P::cast && !is_float_) y = rounded(to_, y);
    // Rounding chooses between two neighbours.
    if (op == P::cast && !is_float_) y = std::clamp(y, e.result - 1, e.result + 1);
    if (std::isnan(y) && !std::isnan(e.result)) return kUnbounded;
    most = std::max(most, distance(y, e.result));
  }
  return most;
}

/// The rounding error of the step itself.
double PointwiseStep::own_rounding(const PointwiseElement& e) const {
  const double size = std::fabs(e.result);
  if (!is_float_ || !std::isfinite(size)) return 0;
  double steps = 0;
  // Operands of a wider dtype are converted to the dtype of the computation.
  for (std::size_t i = 0; i < from_.size(); ++i)
    if (from_[i].rounds) steps += inner_unit_ * (is_sum_ ? std::fabs(e.x[i]) : size);
  if (way_ == Way::exact) return steps;
  if (is_exact(e)) return 0;
  // A cast to a wider float is exact. An integer that the float cannot represent changes; that is
  // not rounding.
  if (widens_) return 0;
  // A cast to fp8 is part of the function, so only earlier computations are uncertain.
  if (is_fp8_cast_) return steps;
  steps += unit_ * size + smallest_fp8_;
  if (unit_ > inner_unit_) steps += inner_unit_ * size;
  if (way_ == Way::function) {
    const bool wave = among(function_.op, {P::sin, P::cos});
    const bool steep = function_.op == P::tan;
    steps += kFunctionSteps * inner_unit_ * (wave ? 1 : steep ? size + size * size : size);
  }
  return steps;
}

/// Returns true if a correctly rounded step on operands without errors returns its exact result,
/// which its dtype represents. Error-free transformations show it (Ogita, Rump, and Oishi, 2005).
bool PointwiseStep::is_exact(const PointwiseElement& e) const {
  const double r = e.result, x = e.x[0], y = e.x[1];
  if (way_ != Way::rounded || rounded(to_, r) != r) return false;
  for (std::size_t i = 0; i < from_.size(); ++i)
    if (e.error[i] != 0 || rounded(common_, e.x[i]) != e.x[i]) return false;
  const P op = function_.op;
  // Near the end of f64 the residual of a product or quotient is lost.
  constexpr double kResidual = 0x1p-960;
  const bool lost = std::min(std::fabs(r), std::fabs(x)) < kResidual;
  if (lost && among(op, {P::mul, P::div, P::sqrt})) return x == 0 || (op == P::mul && y == 0);
  if (op == P::mul) return std::fma(x, y, -r) == 0;
  if (op == P::div) return std::fma(r, y, -x) == 0;
  if (op == P::sqrt) return std::fma(r, r, -x) == 0;
  if (op == P::cast) return r == x;
  const double addend = op == P::add ? y : -y, part = r - x;
  return (x - (r - part)) + (addend - part) == 0;
}

void PointwiseStep::reach_of_operands(PointwiseElement& e) const {
  e.reached = RangeState::inside;
  for (std::size_t k = 0; k < from_.size(); ++k) {
    RangeState reach = e.reach[k];
    // An unselected operand does not affect the result.
    if (function_.op == P::select && e.error[0] == 0 && k > 0 && (k == 1) != (e.x[0] != 0))
      continue;
    if (from_[k].may_overflow && leaves_f32(e.x[k])) reach = RangeState::left;
    if (reach == RangeState::partial && !keeps_sum_ &&
        !(std::fabs(e.x[k]) + e.error[k] <= from_[k].largest))
      reach = RangeState::left;
    e.reached = std::max(e.reached, reach);
  }
}

void PointwiseStep::follow_reach(PointwiseElement& e) const {
  reach_of_operands(e);
  if (!is_float_) return;
  const Primitive op = function_.op;
  const bool finite = std::all_of(e.x.begin(), e.x.begin() + function_.operands,
                                  [](double x) { return std::isfinite(x); });
  if (!std::isfinite(e.result) && (!finite || is_pole(op, e))) return;
  const double size = std::fabs(e.result);
  if (is_sum_) {
    if (!(e.magnitude + e.bound <= largest_)) e.reached = std::max(e.reached, RangeState::partial);
  } else if (!is_fp8_cast_ && !(size + e.bound <= largest_)) {
    const bool sum = keeps_sum_ && e.reached == RangeState::partial;
    if (!sum) e.reached = RangeState::left;
  }
  const bool rounds = !is_sum_ && way_ != Way::exact && !is_fp8_cast_;
  if (rounds && finite && size < smallest_normal_) {
    const bool held = op == P::cast && is_float(from_[0].dtype) && rounded(to_, e.x[0]) == e.x[0];
    if (size > 0 ? !held : vanished(op, e)) e.reached = RangeState::left;
  }
}

void PointwiseStep::bound(PointwiseElement& e) const {
  const double moved = spread(e);
  if (is_float_) {
    const double before = function_.of(e.x.data());
    e.bound = known_error(before, moved + own_rounding(e));
    if (is_fp8_cast_) e.bound = rounded_error(to_, before, e.bound);
  } else {
    e.bound = std::isnan(moved) ? kUnbounded : moved;
  }
  e.magnitude = std::fabs(e.result);
  if (is_sum_) e.magnitude = e.sum[0] + e.sum[1];
  if (keeps_sum_ && !is_sum_) e.magnitude = std::max(e.magnitude, e.sum[0]);
  follow_reach(e);
}

}  // namespace pw
