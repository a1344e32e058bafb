// The backend that is always there: one op at a time on Eigen, values in their declared dtype,
// arithmetic in f32. Ops with a body run primitive by primitive, so that their meaning is written
// once.
#pragma once

#include <memory>

#include "backends/backend.hpp"

namespace pw {

[[nodiscard]] std::unique_ptr<Backend> make_eager();

/// Whether eager, and every backend with it, runs an op without a body by a kernel of its own.
[[nodiscard]] bool has_kernel(const Op& op);

}  // namespace pw
