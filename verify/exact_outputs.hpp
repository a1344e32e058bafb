// Integers and masks that no rounding can have changed: there the unrewritten run on the backend
// must equal the reference. Where it does not, the backend is wrong, and both runs may be alike.
#pragma once

#include "verify/ties.hpp"

namespace pw {

/// Fails the outputs whose unrewritten run differs from the reference though error bounds say that
/// nothing was rounded on the way. Leaves reports as they are where no bounds can be made.
void check_exact_outputs(const CheckedRun& run, const Yardstick& yardstick,
                         std::span<NumericReport> reports);

}  // namespace pw
