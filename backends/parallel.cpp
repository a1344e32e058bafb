// Exports parallel_for and parallel_jobs, on threads of their own for each call.
#include "backends/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include <sched.h>

namespace pw {
namespace {

/// Those that this process may run on, which can be fewer than the machine has.
std::int64_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, CPU_COUNT(&set));
}

/// Calls work(i) for each i below `count` at the same time, the first one on this thread. What the
/// first of them threw is thrown again when all are done.
void on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> thrown(count);
  const auto guarded = [&](std::size_t i) {
    try {
      work(i);
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < count; ++i) others.emplace_back(guarded, i);
    guarded(0);
  }
  for (const std::exception_ptr& one : thrown)
    if (one) std::rethrow_exception(one);
}

}  // namespace

void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& work) {
  // Asking the system costs more than a small kernel takes.
  static const std::int64_t cores = allowed_cores();
  const std::int64_t parts = std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1,
                                                      std::min<std::int64_t>(cores, 16));
  if (parts == 1) return work(0, count);
  on_threads(static_cast<std::size_t>(parts), [&](std::size_t i) {
    const auto part = static_cast<std::int64_t>(i);
    work(count * part / parts, count * (part + 1) / parts);
  });
}

void parallel_jobs(std::size_t count, std::size_t threads,
                   const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  on_threads(std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(count, 1)),
             [&](std::size_t) {
               for (std::size_t i = next++; i < count; i = next++) job(i);
             });
}

}  // namespace pw
