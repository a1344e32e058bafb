// Whether an output is what another system says it is: by the RMS of the difference, beside what
// rounding does to the unrewritten graph; or each element within a tolerance that is named.
#pragma once

#include <cstdint>
#include <string>

#include "verify/numeric.hpp"

namespace pw {

/// |got - expected| may be absolute + relative * |expected|. Negative: those of the coarser of the
/// two dtypes, which allow a few roundings; none for integers and masks.
struct Tolerance {
  double relative = -1, absolute = -1;
  [[nodiscard]] bool named() const { return relative >= 0 || absolute >= 0; }
};
[[nodiscard]] Tolerance usual_tolerance(DType dtype);

struct ExpectedCheck {
  std::string name;
  DType dtype = DType::f32, expected_dtype = DType::f32;
  std::int64_t count = 0;
  double rms = 0;               ///< of the finite values expected
  double rms_error = 0;         ///< of the finite ones
  double bound = 0;             ///< what rms_error may be, where it decides
  double largest = 0;           ///< difference
  std::int64_t outside = 0;     ///< elements beyond the tolerance
  std::int64_t not_finite = 0;  ///< NaN or another infinity where the other has none
  bool passed = false;
  std::string reason;  ///< why not
};
/// Extents must agree, or it fails with that as the reason.
ExpectedCheck check_expected(const std::string& name, const TensorView& got,
                             const TensorView& expected, const Tolerance& tolerance = {});

/// The same output of the unrewritten graph.
struct OutputYardstick {
  TensorView reference;  ///< f64
  TensorView before;     ///< on the backend
};
/// Two right runs are apart by what each is from the reference. The RMS of their difference may be
/// the unrewritten run's RMS error, and what check_output allows another run: 1.5 times that, and
/// one ulp of the coarser dtype. Integers and masks must be equal.
ExpectedCheck check_expected(const std::string& name, const TensorView& got,
                             const TensorView& expected, const OutputYardstick& yardstick,
                             const NumericLimits& limits = {});

}  // namespace pw
