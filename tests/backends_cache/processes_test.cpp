// Several processes that share a cache, and processes that are killed.
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "backends/cpu/cpu.hpp"
#include "base/hash.hpp"
#include "codegen/cache/lock.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cache/folders.hpp"

namespace {

using namespace pw;
using namespace pw::test;

constexpr const char* kPlan =
    "symbol n in 1..64 tokens  in x: bf16[n, 64], z: bf16[n, 64], w: bf16[64], m: bf16[64, 128], "
    "s: f32[1]  h, r = fused_add_rms_norm(x, z, w)  g = mm(h, m)  a = silu_and_mul(g)  q = "
    "static_scaled_fp8_quant(a, s)  k = mm(r, m)  b = gelu(k)  out q, b, r";

std::string large_object(int i) { return std::string(200000, 'x') + std::to_string(i); }

CpuReport compile_plan(const std::string& folder) {
  CpuBackend cpu({.cache = std::make_shared<CompileCache>(CacheOptions{folder, ""})});
  REQUIRE(cpu.compile(graph_of(kPlan)));
  return cpu.report();
}

bool no_compiler() {
  if (!host_compiler().empty()) return false;
  WARN("SKIPPED: no C++ compiler on PATH, so nothing can be compiled");
  return true;
}

}  // namespace

TEST_CASE("cache: a process killed in the middle of 200 writes leaves whole objects only",
          "[cache]") {
  const PrivateFolder folder;
  constexpr int kObjects = 200;
  std::size_t killed = 0, left_over = 0;
  Random random(11);
  for (int round = 0; round < 12; ++round) {
    const std::size_t before = files_of(folder.path()).size();
    const pid_t child = ::fork();
    if (child == 0) {
      CompileCache cache({folder.path(), ""});
      for (int i = round * kObjects; i < (round + 1) * kObjects; ++i)
        (void)cache.get("test", parts_of(i),
                        [&]() -> Result<std::string> { return large_object(i); });
      ::_exit(0);
    }
    // After the first objects exist; the seed determines how much later.
    while (files_of(folder.path()).size() <= before + 2) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(5000)));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    CompileCache cache({folder.path(), ""});
    const CacheContents contents = cache.inspect(true);
    CHECK(contents.bad == 0);
    left_over += contents.leftovers;
    CHECK(files_of(folder.path() + "/objects", ".tmp-").empty());
    CHECK(contents.kinds.at("test").objects == files_of(folder.path() + "/objects").size());
  }
  INFO(left_over << " unfinished files");
  CHECK(killed > 0);
  // Nothing that a dead process held blocks the next one, and every object is available.
  CompileCache cache({folder.path(), ""});
  for (int i = 0; i < kObjects; ++i) {
    auto got =
        cache.get("test", parts_of(i), [&]() -> Result<std::string> { return large_object(i); });
    REQUIRE(got);
    REQUIRE(*got == large_object(i));
  }
  CHECK(cache.counts().evicted == 0);
}

TEST_CASE("cache: a process forked while a thread holds a lock does not hold it", "[cache]") {
  const PrivateFolder folder;
  const std::string path = folder.path() + "/lock";
  std::atomic<bool> taken = false, forked = false;
  std::thread holder([&] {
    const FileLock lock(path);
    taken = true;
    forked.wait(false);
  });
  while (!taken) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(600);  // it would wait for itself
    ::_exit(FileLock(path).held() ? 0 : 1);
  }
  forked = true;
  forked.notify_all();
  holder.join();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("cache: eight processes compile one plan at once, each kernel once", "[cache][cpu]") {
  if (no_compiler()) return;
  const PrivateFolder folder;
  const std::string cache = folder.path() + "/cache";
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const CpuReport report = compile_plan(cache);
      std::ofstream(folder.path() + fmt::format("/report{}", i))
          << report.compiled << " " << report.cache.found << " " << report.kernels.size();
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  std::size_t compiled = 0, kernels = 0;
  for (int i = 0; i < 8; ++i) {
    std::size_t own = 0, found = 0;
    std::ifstream(folder.path() + fmt::format("/report{}", i)) >> own >> found >> kernels;
    CHECK(own + found == kernels);
    compiled += own;
  }
  CHECK(kernels >= 3);
  CHECK(compiled == kernels);
  CompileCache after({cache, ""});
  CHECK(after.inspect(false).kinds.at("cpu").objects == kernels);
  CHECK(after.totals().made == kernels);
  CHECK(after.totals().found == 7 * kernels);
}

TEST_CASE("cache: a warm start runs no compiler, and damaged kernels are compiled anew",
          "[cache][cpu]") {
  if (no_compiler()) return;
  const PrivateFolder folder;
  const CpuReport cold = compile_plan(folder.path()), warm = compile_plan(folder.path());
  CHECK(cold.compiled == cold.kernels.size());
  CHECK(warm.compiled == 0);
  CHECK(warm.cache.found == warm.kernels.size());
  for (const std::string& path : files_of(folder.path() + "/objects")) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(300);
    file.put('\x7e').put('\x01');
  }
  const CpuReport again = compile_plan(folder.path());
  CHECK(again.cache.evicted == again.kernels.size());
  CHECK(again.compiled == again.kernels.size());
  CHECK(again.fallbacks.size() == cold.fallbacks.size());
}
