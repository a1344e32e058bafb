// The memory that a run can have at all: what needs more is refused before it is allocated.
#pragma once

#include <cstdint>

namespace pw {

/// Bytes: the machine's, or fewer where the process or its control group is limited. Asked once.
[[nodiscard]] std::int64_t memory_limit();

}  // namespace pw
