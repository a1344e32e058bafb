// Splits an index range over the machine's cores.
#pragma once

#include <cstdint>
#include <functional>

namespace pw {

/// Calls work(begin, end) on disjoint parts of [0, count), at least `grain` long but for the last;
/// returns when all are done.
void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& work);

}  // namespace pw
