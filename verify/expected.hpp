// Compares outputs with those of another system. By default the RMS of the difference decides,
// relative to the rounding error of the unrewritten graph. A named tolerance is checked elementwise
// instead.
#pragma once

#include <cstdint>
#include <string>

#include "verify/numeric.hpp"

namespace pw {

/// Elementwise bound: |got − expected| ≤ absolute + relative · |expected|. Negative values select
/// the defaults of the coarser dtype, which allow a few roundings; integers and masks must match
/// exactly.
struct Tolerance {
  double relative = -1, absolute = -1;
  [[nodiscard]] bool named() const { return relative >= 0 || absolute >= 0; }
};
[[nodiscard]] Tolerance usual_tolerance(DType dtype);

struct ExpectedCheck {
  std::string name;
  DType dtype = DType::f32, expected_dtype = DType::f32;
  std::int64_t count = 0;
  double rms = 0;               ///< over the finite expected values
  double rms_error = 0;         ///< over the finite values
  double bound = 0;             ///< limit for rms_error, if it decides
  double largest = 0;           ///< largest difference
  std::int64_t outside = 0;     ///< elements outside the tolerance
  std::int64_t not_finite = 0;  ///< NaN or infinity on one side only, or unequal infinities
  bool passed = false;
  std::string reason;  ///< reason for the failure
};
/// Compares one output elementwise. Fails if the extents differ.
ExpectedCheck check_expected(const std::string& name, const TensorView& got,
                             const TensorView& expected, const Tolerance& tolerance = {});

/// One output of the unrewritten graph, on the reference and on the backend.
struct OutputYardstick {
  TensorView reference;  ///< f64
  TensorView before;     ///< on the backend
};
/// Compares one output by RMS. Two correct runs differ by the rounding errors of both. The limit is
/// therefore the RMS error of the unrewritten run plus check_output's limit for another run: 1.5
/// times that error plus one ulp of the coarser dtype. Integers and masks must be equal.
ExpectedCheck check_expected(const std::string& name, const TensorView& got,
                             const TensorView& expected, const OutputYardstick& yardstick,
                             const NumericLimits& limits = {});

}  // namespace pw
