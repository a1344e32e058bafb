// Work on several threads: an index range split over the machine's cores, and jobs of unequal
// length. What a part or a job throws is thrown again to the caller, after all have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace pw {

/// On threads that wait for the next call; inside of `work`, and while another thread's call is
/// running, all of it is done by the caller. Calls work(begin, end) on disjoint parts of [0,
/// count), at least `grain` long but for the last; returns when all are done. A thread has several
/// parts, of at least `chunk` each, so that what is late holds nobody up; 0: four grains.
void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& work,
                  std::int64_t chunk = 0);

/// Runs work(i) for each i below `count`, which is small, at the same time.
using TeamRunner =
    std::function<void(std::size_t count, const std::function<void(std::size_t i)>& work)>;
/// From now on parallel_for uses at most so many threads, at least one, and has them run by
/// `runner`, where one is given: another library's threads instead of its own. A forked process, in
/// which another library's may be gone, has its own.
void use_threads(std::int64_t most, TeamRunner runner = {});
/// Those of an OpenMP runtime that is loaded already, by its GOMP_parallel
/// (https://gcc.gnu.org/onlinedocs/libgomp); empty where it is not loaded, or has none.
[[nodiscard]] TeamRunner openmp_threads(const std::string& library);

/// Calls job(i) for each i below `count`, in their order, by at most so many threads, the caller's
/// among them; each takes the next when it is done.
void parallel_jobs(std::size_t count, std::size_t threads,
                   const std::function<void(std::size_t i)>& job);

}  // namespace pw
