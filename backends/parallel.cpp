// Exports parallel_for, on threads of its own for each call.
#include "backends/parallel.hpp"

#include <algorithm>
#include <thread>
#include <vector>

namespace pw {

void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& work) {
  // Asking the system costs more than a small kernel takes.
  static const auto cores =
      static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
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

}  // namespace pw
