// Work on several threads: all of it is done, and what a thread throws reaches the caller.
#include "backends/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace pw;

TEST_CASE("parallel: each job runs once", "[backends]") {
  for (std::size_t threads : {0, 1, 3, 200}) {
    std::vector<std::atomic<int>> runs(100);
    parallel_jobs(runs.size(), threads, [&](std::size_t i) { ++runs[i]; });
    for (const auto& count : runs) CHECK(count == 1);
  }
  std::atomic<std::int64_t> sum{0};
  parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
  CHECK(sum == 1000);
}

TEST_CASE("parallel: what a job throws is thrown again when all have ended", "[backends]") {
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
