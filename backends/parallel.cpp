// Exports parallel_for and parallel_jobs, on threads of their own for each call.
#include "backends/parallel.hpp"

#include <algorithm>
#include <atomic>
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

}  // namespace

void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& work) {
  // Asking the system costs more than a small kernel takes.
  static const std::int64_t cores = allowed_cores();
  const std::int64_t parts = std::clamp<std::int64_t>(count / std::max<std::int64_t>(grain, 1), 1,
                                                      std::min<std::int64_t>(cores, 16));
  const auto begin_of = [&](std::int64_t part) { return count * part / parts; };
  if (parts == 1) return work(0, count);
  std::vector<std::thread> threads;
  for (std::int64_t part = 1; part < parts; ++part)
    threads.emplace_back([&, part] { work(begin_of(part), begin_of(part + 1)); });
  work(0, begin_of(1));
  for (std::thread& thread : threads) thread.join();
}

void parallel_jobs(std::size_t count, std::size_t threads,
                   const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(threads, count); ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

}  // namespace pw
