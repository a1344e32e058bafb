// Whether an output is what another system says it is: each element within an absolute and a
// relative tolerance.
#pragma once

#include <cstdint>
#include <string>

#include "backends/tensor.hpp"

namespace pw {

/// |got - expected| may be absolute + relative * |expected|. Negative: those of the coarser of the
/// two dtypes, which allow a few roundings; none for integers and masks.
struct Tolerance {
  double relative = -1, absolute = -1;
};
[[nodiscard]] Tolerance usual_tolerance(DType dtype);

struct ExpectedCheck {
  std::string name;
  DType dtype = DType::f32, expected_dtype = DType::f32;
  std::int64_t count = 0;
  double rms = 0;               ///< of the finite values expected
  double rms_error = 0;         ///< of the finite ones
  double largest = 0;           ///< difference
  std::int64_t outside = 0;     ///< elements beyond the tolerance
  std::int64_t not_finite = 0;  ///< NaN or another infinity where the other has none
  bool passed = false;
  std::string reason;  ///< why not
};
/// Extents must agree, or it fails with that as the reason.
ExpectedCheck check_expected(const std::string& name, const TensorView& got,
                             const TensorView& expected, const Tolerance& tolerance = {});

}  // namespace pw
