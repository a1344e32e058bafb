// Work on several threads: an index range split over the machine's cores, and jobs of unequal
// length. What a part or a job throws is thrown again to the caller, after all have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace pw {

/// Calls work(begin, end) on disjoint parts of [0, count), at least `grain` long but for the last;
/// returns when all are done.
void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& work);

/// Calls job(i) for each i below `count`, in their order, by at most so many threads, the caller's
/// among them; each takes the next when it is done.
void parallel_jobs(std::size_t count, std::size_t threads,
                   const std::function<void(std::size_t i)>& job);

}  // namespace pw
