// Error bounds for one element of a pointwise op, from the errors of its operands: interval
// evaluation at the end points.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "graph/ops/primitive.hpp"
#include "verify/bounds.hpp"

namespace pw {

[[nodiscard]] bool is_fp8(DType dtype);
/// Returns |a − b|; 0 for equal infinities, infinity if undefined.
[[nodiscard]] double distance(double a, double b);
/// Returns the error, or infinity if it is unknown.
[[nodiscard]] double known_error(double before, double error);
/// Returns the error of a number after a cast to fp8. The cast is a step function, so the exact run
/// applies it too.
[[nodiscard]] double rounded_error(DType dtype, double before, double error);

struct PointwiseFunction {
  Primitive op;
  double (*of)(const double* x);
  int operands = 1;
};
/// Returns the function of a pointwise op; null for any other op.
[[nodiscard]] const PointwiseFunction* find_pointwise(Primitive op);

/// An element, its operands' bounds, and the resulting bound.
struct PointwiseElement {
  std::array<double, 3> x = {}, error = {}, sum = {};
  std::array<RangeState, 3> reach = {};
  double result = 0;                ///< exact
  double bound = 0, magnitude = 0;  ///< error bound; sum of the magnitudes that contribute
  RangeState reached = RangeState::inside;
};

struct PointwiseStep {
  const PointwiseFunction* function = nullptr;
  std::vector<DType> from;
  DType to = DType::f32;
  double unit = 0,
         inner_unit = 0;  ///< unit roundoff of the result's dtype and of the computation
  bool exact = false;     ///< for a run in double precision

  /// Returns the dtype of the computation; f32 for narrow floats.
  [[nodiscard]] DType common() const;
  void bound(PointwiseElement& e) const;

 private:
  [[nodiscard]] double spread(const PointwiseElement& e) const;
  [[nodiscard]] double at_ends(const PointwiseElement& e) const;
  [[nodiscard]] double own_rounding(const PointwiseElement& e) const;
  [[nodiscard]] bool is_exact(const PointwiseElement& e) const;
  [[nodiscard]] bool leaves_by_reading(double x, std::size_t operand) const;
  void follow_reach(PointwiseElement& e) const;
};

}  // namespace pw
