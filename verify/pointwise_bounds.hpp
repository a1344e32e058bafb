// Error bounds for one element of a pointwise op, from the errors of its operands: interval
// evaluation at the end points.
#pragma once

#include <array>
#include <cstdint>
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

/// How the result of a pointwise op is rounded.
enum class PointwiseWay : std::uint8_t {
  exact,     ///< its result is a number of the dtype
  rounded,   ///< rounds once
  function,  ///< of a library
  compared,  ///< 0 or 1
  bits,      ///< of whole numbers
};

/// An element, its operands' bounds, and the resulting bound.
struct PointwiseElement {
  std::array<double, 3> x = {}, error = {}, sum = {};
  std::array<RangeState, 3> reach = {};
  double result = 0;                ///< exact
  double bound = 0, magnitude = 0;  ///< error bound; sum of the magnitudes that contribute
  RangeState reached = RangeState::inside;
};

/// A pointwise op on operands of certain dtypes. The constructor computes all that depends only on
/// these, as `bound` runs for each element of each sample.
class PointwiseStep {
 public:
  /// `unit`: unit roundoff of the result's dtype; `exact`: for a run in double precision.
  PointwiseStep(Primitive op, const std::vector<DType>& from, DType to, double unit, bool exact);
  /// Computes `bound`, `magnitude`, and `reached` from the others.
  void bound(PointwiseElement& e) const;

 private:
  struct Operand {
    DType dtype = DType::f32;
    double largest = 0;         ///< the largest number before it leaves its range
    bool rounds = false;        ///< its conversion to the dtype of the computation may round
    bool may_overflow = false;  ///< an f64 number, such as a constant, which is converted to f32
  };

  [[nodiscard]] double spread(const PointwiseElement& e) const;
  [[nodiscard]] double at_ends(const PointwiseElement& e) const;
  [[nodiscard]] double own_rounding(const PointwiseElement& e) const;
  [[nodiscard]] bool is_exact(const PointwiseElement& e) const;
  void follow_reach(PointwiseElement& e) const;
  void reach_of_operands(PointwiseElement& e) const;

  PointwiseFunction function_;
  std::vector<Operand> from_;
  DType to_, common_;  ///< of the result, and of the computation: f32 for narrow floats
  PointwiseWay way_;
  double unit_, inner_unit_;  ///< unit roundoff of the result's dtype and of the computation
  double largest_ = 0, smallest_normal_ = 0;  ///< of the result's range
  double smallest_fp8_ = 0;                   ///< half of the smallest fp8 number; else 0
  bool is_sum_, keeps_sum_;
  bool is_float_, is_fp8_cast_;  ///< of the result
  bool widens_;                  ///< a cast that represents all numbers of its operand
};

}  // namespace pw
