#include "tensor/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

namespace pw {
namespace {

using Work = std::function<void(std::size_t)>;

/// Returns the cores that this process may run on, which can be fewer than the machine's.
std::int64_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, CPU_COUNT(&set));
}

/// Chunks of a parallel_for that one thread has: others take of them once they have none.
struct alignas(64) Share {
  std::atomic<std::int64_t> next;
  std::int64_t end;
};

/// Calls of `work` whose exceptions are kept, and the first thrown again when all have ended.
class Guarded {
 public:
  Guarded(std::size_t count, const Work& work) : work_(work), thrown_(count) {}
  void operator()(std::size_t i) {
    try {
      work_(i);
    } catch (...) {
      thrown_[i] = std::current_exception();
    }
  }
  void rethrow() const {
    for (const std::exception_ptr& one : thrown_)
      if (one) std::rethrow_exception(one);
  }

 private:
  const Work& work_;
  std::vector<std::exception_ptr> thrown_;
};

/// Calls work(i) for each i below `count` at the same time, the first one on this thread.
void on_threads(std::size_t count, const Work& work) {
  Guarded guarded(count, work);
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < count; ++i) others.emplace_back([&guarded, i] { guarded(i); });
    guarded(0);
  }
  guarded.rethrow();
}

/// Threads that wait for work. They end with the process: a static pool that joined them would wait
/// for ever in a forked one, which does not have them.
class Pool {
 public:
  /// Runs one call at a time.
  void run(std::size_t count, const Work& work) {
    while (workers_ + 1 < count)
      std::thread([this, i = ++workers_, seen = round_.load()] { serve(i, seen); }).detach();
    work_ = &work;
    count_ = count;
    left_.store(workers_, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    work(0);
    for (std::size_t left; (left = left_.load(std::memory_order_acquire)) != 0;) left_.wait(left);
  }

 private:
  /// Takes part in every round after `seen`.
  void serve(std::size_t i, std::uint64_t seen) {
    for (;; ++seen) {
      round_.wait(seen, std::memory_order_acquire);
      if (i < count_) (*work_)(i);
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    }
  }

  std::size_t workers_ = 0, count_ = 0;
  const Work* work_ = nullptr;
  std::atomic<std::uint64_t> round_ = 0;
  std::atomic<std::size_t> left_ = 0;  ///< workers that have not ended this round
};

struct Team {
  std::mutex busy;
  std::atomic<std::int64_t> most = 0;  ///< 0: as many as there are cores
  TeamRunner runner;                   ///< empty: the pool
  Pool* pool = nullptr;
  bool forked = false;  ///< of a forked process

  void run(std::size_t count, const Work& work) {
    if (runner) return runner(count, work);
    if (pool == nullptr) pool = new Pool;
    pool->run(count, work);
  }
};

std::atomic<Team*>& team_of_process() {
  static std::atomic<Team*> one = nullptr;
  return one;
}

/// A forked process has neither the threads of the team, nor those of another library, nor the one
/// that may have held its lock.
void replace_team() {
  auto* const fresh = new Team;
  fresh->most = team_of_process().load()->most.load();
  fresh->forked = true;
  team_of_process() = fresh;
}

Team& team() {
  static const bool made = [] {
    team_of_process() = new Team;
    return ::pthread_atfork(nullptr, nullptr, replace_team) == 0;
  }();
  (void)made;
  return *team_of_process();
}

std::int64_t most_of(const Team& team) {
  // Asking the system costs more than a small kernel takes.
  static const std::int64_t cores = allowed_cores();
  const std::int64_t most = team.most;
  return std::min<std::int64_t>(most > 0 ? most : cores, 16);
}

thread_local bool inside = false;  // of a parallel_for

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

}  // namespace

void use_threads(std::int64_t most, TeamRunner runner) {
  const std::lock_guard<std::mutex> lock(team().busy);
  team().most = std::max<std::int64_t>(most, 1);
  if (!team().forked) team().runner = std::move(runner);
}

bool in_forked_process() { return team().forked; }

TeamRunner openmp_threads(const std::string& library) {
  using Parallel = void(void (*)(void*), void*, unsigned, unsigned);
  using Number = int();
  void* const handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  auto* const parallel = reinterpret_cast<Parallel*>(::dlsym(handle, "GOMP_parallel"));
  auto* const number = reinterpret_cast<Number*>(::dlsym(handle, "omp_get_thread_num"));
  auto* const size = reinterpret_cast<Number*>(::dlsym(handle, "omp_get_num_threads"));
  if (parallel == nullptr || number == nullptr || size == nullptr) return {};
  return [=](std::size_t count, const Work& work) {
    struct Region {
      std::size_t count;
      const Work& work;
      Number *number, *size;
    } region{count, work, number, size};
    // The runtime may provide fewer threads than requested.
    const auto body = [](void* given) {
      const Region& r = *static_cast<Region*>(given);
      const auto step = static_cast<std::size_t>(r.size());
      for (auto i = static_cast<std::size_t>(r.number()); i < r.count; i += step) r.work(i);
    };
    parallel(body, &region, static_cast<unsigned>(count), 0);
  };
}

void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t, std::int64_t)>& work, std::int64_t chunk) {
  constexpr std::int64_t kMostChunks = 16, kGrains = 4;
  grain = std::max<std::int64_t>(grain, 1);
  if (chunk <= 0) chunk = kGrains * grain;
  const std::int64_t wanted = count / grain;
  if (wanted <= 1 || inside) return work(0, count);
  const std::unique_lock<std::mutex> lock(team().busy, std::try_to_lock);
  const std::int64_t most = lock ? most_of(team()) : 1;
  const std::int64_t parts = std::min(wanted, most);
  if (parts <= 1) return work(0, count);
  const std::int64_t each = std::clamp<std::int64_t>(count / chunk / parts, 1, kMostChunks),
                     chunks = each * parts;
  std::vector<Share> shares(static_cast<std::size_t>(parts));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i].next = static_cast<std::int64_t>(i) * each;
    shares[i].end = static_cast<std::int64_t>(i + 1) * each;
  }
  const Work part = [&](std::size_t first) {
    const Inside here;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      Share& share = shares[(first + i) % shares.size()];
      for (std::int64_t at; (at = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
        work(count * at / chunks, count * (at + 1) / chunks);
    }
  };
  Guarded guarded(static_cast<std::size_t>(parts), part);
  team().run(static_cast<std::size_t>(parts), [&](std::size_t i) { guarded(i); });
  guarded.rethrow();
}

std::int64_t thread_limit() { return most_of(team()); }

bool in_parallel_for() { return inside; }

void parallel_jobs(std::size_t count, std::size_t threads,
                   const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  on_threads(std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(count, 1)),
             [&](std::size_t) {
               for (std::size_t i = next++; i < count; i = next++) job(i);
             });
}

}  // namespace pw
