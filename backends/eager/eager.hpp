// The backend that is always available: one op at a time on Eigen, with values in their declared
// dtype and f32 arithmetic. Ops with a body run primitive by primitive, so their meaning is defined
// in one place.
#pragma once

#include <memory>

#include "backends/backend.hpp"

namespace pw {

[[nodiscard]] std::unique_ptr<Backend> make_eager();

/// Returns true if eager, and thus every backend, has a kernel for an op without a body.
[[nodiscard]] bool has_kernel(const Op& op);

}  // namespace pw
