// Multithreaded work: an index range split over the machine's cores, and jobs of unequal length. An
// exception of a part or job is rethrown to the caller after all have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace pw {

/// Calls work(begin, end) on disjoint parts of [0, count), each at least `grain` long except the
/// last, and returns when all are done. The calls run on a pool of threads; nested calls, and calls
/// while another thread's call is running, run entirely on the caller. A thread gets several parts
/// of at least `chunk` each for load balance; 0: four grains.
void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& work,
                  std::int64_t chunk = 0);

/// Runs work(i) for each i below `count`, which is small, concurrently.
using TeamRunner =
    std::function<void(std::size_t count, const std::function<void(std::size_t i)>& work)>;
/// Limits parallel_for to `most` threads (at least one) and runs them by `runner`, if given:
/// another library's threads in place of its own. A forked process uses its own threads, because
/// another library's may be gone.
void use_threads(std::int64_t most, TeamRunner runner = {});
/// Returns the threads of an already loaded OpenMP runtime, by its GOMP_parallel
/// (https://gcc.gnu.org/onlinedocs/libgomp); empty if it is not loaded or lacks it.
[[nodiscard]] TeamRunner openmp_threads(const std::string& library);

/// Returns true in a process forked after the first use of this module. Threads of other libraries,
/// such as OpenMP's, are gone there, and a call that waits for them never returns.
[[nodiscard]] bool in_forked_process();

/// Returns the most threads that parallel_for uses.
[[nodiscard]] std::int64_t thread_limit();
/// Returns true in a part of a parallel_for.
[[nodiscard]] bool in_parallel_for();

/// Calls job(i) for each i below `count`, in order, on at most `threads` threads including the
/// caller's. Each thread takes the next job when it finishes one.
void parallel_jobs(std::size_t count, std::size_t threads,
                   const std::function<void(std::size_t i)>& job);

}  // namespace pw
