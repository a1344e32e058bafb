// Integers and masks that no rounding can have changed: there the unrewritten run on the backend
// must equal the reference. If it differs, the backend is wrong even if both runs agree.
#pragma once

#include "verify/ties.hpp"

namespace pw {

/// Fails the outputs whose unrewritten run differs from the reference though error bounds say that
/// nothing was rounded on the way. Leaves reports unchanged if no bounds can be computed.
void check_exact_outputs(const CheckedRun& run, const Yardstick& yardstick,
                         std::span<NumericReport> reports);

}  // namespace pw
