// Work on several threads: all of it is done, and an exception of a thread reaches the caller.
#include "tensor/parallel.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.hpp"

using namespace pw;

namespace {

/// Returns the sum of the numbers below `count`, computed by parallel_for.
std::int64_t sum_below(std::int64_t count) {
  std::atomic<std::int64_t> sum{0};
  parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum += i;
  });
  return sum;
}

}  // namespace

TEST_CASE("parallel: each job runs once", "[threads]") {
  for (std::size_t threads : {0, 1, 3, 200}) {
    std::vector<std::atomic<int>> runs(100);
    parallel_jobs(runs.size(), threads, [&](std::size_t i) { ++runs[i]; });
    for (const auto& count : runs) CHECK(count == 1);
  }
  std::atomic<std::int64_t> sum{0};
  parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  CHECK(sum == 1000);
}

TEST_CASE("parallel: what a job throws is thrown again when all have ended", "[threads]") {
  std::atomic<int> done{0};
  const auto job = [&](std::size_t i) {
    if (i == 7) throw std::runtime_error("seven");
    ++done;
  };
  CHECK_THROWS_WITH(parallel_jobs(16, 4, job), "seven");
  CHECK(done >= 7);
  CHECK_THROWS_WITH(parallel_for(1 << 10, 1,
                                 [](std::int64_t begin, std::int64_t) {
                                   if (begin > 0) throw std::runtime_error("later");
                                   throw std::runtime_error("first");
                                 }),
                    "first");
}

TEST_CASE("parallel: loops within a loop, and loops of several threads, are done whole",
          "[threads]") {
  std::atomic<std::int64_t> sum{0};
  parallel_for(16, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sum += sum_below(100);
  });
  CHECK(sum == 16 * 4950);
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i)
      callers.emplace_back([&] {
        for (int round = 0; round < 50; ++round) right += sum_below(1000) == 499500;
      });
  }
  CHECK(right == 200);
}

TEST_CASE("parallel: a part that is late holds up no other", "[threads]") {
  constexpr std::int64_t kCount = 64;
  use_threads(2);
  std::atomic<std::int64_t> done{0};
  bool all = false;  // of the others finished while the first waited
  parallel_for(
      kCount, 1,
      [&](std::int64_t begin, std::int64_t end) {
        const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(600);
        while (begin == 0 && !all && std::chrono::steady_clock::now() < last) {
          all = done + end == kCount;
          std::this_thread::yield();
        }
        done += end - begin;
      },
      1);
  use_threads(4);
  CHECK(done == kCount);
  CHECK(all);
}

TEST_CASE("parallel: loops on threads of another library", "[threads]") {
  std::vector<std::size_t> counts;
  use_threads(3, [&](std::size_t count, const std::function<void(std::size_t)>& work) {
    counts.push_back(count);
    for (std::size_t i = count; i > 0; --i) work(i - 1);
  });
  CHECK(sum_below(1000) == 499500);
  CHECK(sum_below(2) == 1);
  use_threads(1);
  CHECK(sum_below(1000) == 499500);
  use_threads(4);
  CHECK(counts == std::vector<std::size_t>{3, 2});
  CHECK(openmp_threads("/no/such/library") == nullptr);
}

#if defined(__has_feature)
#define PW_HAS_FEATURE(name) __has_feature(name)
#else
#define PW_HAS_FEATURE(name) 0
#endif
#if !PW_HAS_FEATURE(thread_sanitizer)  // which forbids threads in a forked process
TEST_CASE("parallel: a forked process has threads of its own", "[threads]") {
  CHECK(sum_below(1000) == 499500);
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(sum_below(1000) == 499500 ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#endif
