// The memory limit of a run; larger requests are refused before allocation.
#pragma once

#include <cstdint>

namespace pw {

/// Returns the limit in bytes: the machine's memory, or less if the process or its control group is
/// limited. Computed once.
[[nodiscard]] std::int64_t memory_limit();

}  // namespace pw
