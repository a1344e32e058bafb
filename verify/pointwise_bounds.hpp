// The error of one element of a pointwise op, by the errors of the elements that it reads: the op
// is evaluated at the ends of their intervals.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "verify/bounds.hpp"

namespace pw {

[[nodiscard]] bool is_fp8(DType dtype);
/// |a − b|; 0 for equal infinities, infinite where it cannot be said.
[[nodiscard]] double distance(double a, double b);
/// The error, infinite where nothing is known of it.
[[nodiscard]] double known_error(double before, double error);
/// The error of a number once it is cast to fp8, which jumps: exact numbers are rounded to it, too.
[[nodiscard]] double rounded_error(DType dtype, double before, double error);

struct PointwiseFunction {
  std::string_view name;
  double (*of)(const double* x);
  int operands = 1;
};
/// Null for any other op.
[[nodiscard]] const PointwiseFunction* find_pointwise(std::string_view op);

/// What is known of an element and its operands, and what follows.
struct PointwiseElement {
  std::array<double, 3> x = {}, error = {}, sum = {};
  std::array<RangeState, 3> reach = {};
  double result = 0;                ///< exact
  double bound = 0, magnitude = 0;  ///< its error; the sum of magnitudes behind it
  RangeState reached = RangeState::inside;
};

struct PointwiseStep {
  const PointwiseFunction* function = nullptr;
  std::vector<DType> from;
  DType to = DType::f32;
  double unit = 0,
         inner_unit = 0;  ///< relative roundings to the result's dtype, and while computing
  bool exact = false;     ///< of a run in double precision

  /// What it computes in; f32 for narrow floats.
  [[nodiscard]] DType common() const;
  void bound(PointwiseElement& e) const;

 private:
  [[nodiscard]] double spread(const PointwiseElement& e) const;
  [[nodiscard]] double at_ends(const PointwiseElement& e) const;
  [[nodiscard]] double own_rounding(const PointwiseElement& e) const;
  [[nodiscard]] bool leaves_by_reading(double x, std::size_t operand) const;
  void follow_reach(PointwiseElement& e) const;
};

}  // namespace pw
