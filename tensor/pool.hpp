// Memory of arrays, kept for later arrays of about the same size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace pw {

/// Returns memory for `bytes` bytes, aligned to 64, with unspecified contents. Large blocks return
/// to the process's pool when their last owner drops them. Thread-safe, and usable in a forked
/// process at any time.
[[nodiscard]] std::shared_ptr<void> pooled_memory(std::size_t bytes);

struct PoolCounts {
  std::size_t kept_blocks = 0, kept_bytes = 0;  ///< in the pool now
  std::size_t most_bytes = 0;                   ///< that the pool keeps
};
[[nodiscard]] PoolCounts pool_counts();

}  // namespace pw
