// Mapped files that change while they are in use: the bytes stay readable, the change is reported,
// and every other bus error ends the process as before.
#include "tensor/mapped_file.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "exec/weights.hpp"
#include "tensor/safetensors.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

constexpr std::size_t kBytes = std::size_t{1} << 20;

/// A file of ones in the folder for temporary files.
class OnesFile {
 public:
  explicit OnesFile(const std::string& name)
      : path((std::filesystem::temp_directory_path() / (name + std::to_string(::getpid())))
                 .string()) {
    REQUIRE(write_file(path, std::string(kBytes, '\1')));
    // Out of the reach of the clock's resolution, so that the next write has another time.
    std::filesystem::last_write_time(
        path, std::filesystem::last_write_time(path) - std::chrono::seconds(10));
  }
  OnesFile(const OnesFile&) = delete;
  OnesFile& operator=(const OnesFile&) = delete;
  ~OnesFile() { std::filesystem::remove(path); }
  void cut_off(std::size_t size) const { REQUIRE(::truncate(path.c_str(), off_t(size)) == 0); }

  std::string path;
};

std::size_t sum(const MappedFile& file) {
  std::size_t out = 0;
  for (const std::byte b : file.bytes()) out += std::to_integer<std::size_t>(b);
  return out;
}

std::string code_of(const Status& result) {
  return result ? std::string() : result.error().front().code;
}

/// The signal that ends a child process that runs the body, or 0 if the body returns. The child
/// starts without a sanitizer's handler.
int signal_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGBUS, SIG_DFL);
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/// Reads the second page of a private mapping whose file has one.
void fault_elsewhere(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  auto* const bytes =
      static_cast<volatile char*>(::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file, 0));
  static_cast<void>(::truncate(path.c_str(), 1));
  static_cast<void>(bytes[kBytes - 1]);
}

TEST_CASE("mapped file: one that is cut off stays readable and is reported", "[backends]") {
  const OnesFile file("cut_off");
  const auto mapped = MappedFile::open(file.path);
  REQUIRE(mapped);
  CHECK(sum(*mapped) == kBytes);
  CHECK(code_of(mapped->check_unchanged()).empty());
  file.cut_off(4096);
  CHECK(sum(*mapped) < kBytes);
  CHECK(code_of(mapped->check_unchanged()) == "PW1275");
  const auto other = mapped->check_unchanged();
  CHECK(other.error().front().message == "the file changed while it was being read");
}

TEST_CASE("mapped file: a change that reads well is reported too", "[backends]") {
  const OnesFile file("rewritten");
  const auto mapped = MappedFile::open(file.path);
  REQUIRE(mapped);
  SECTION("within a page") { file.cut_off(kBytes - 1); }
  SECTION("cut off and made longer again") {
    file.cut_off(0);
    file.cut_off(kBytes);
  }
  SECTION("one byte") {
    const int out = ::open(file.path.c_str(), O_WRONLY);
    REQUIRE(::pwrite(out, "\2", 1, 100) == 1);
    ::close(out);
  }
  CHECK(code_of(mapped->check_unchanged()) == "PW1275");
}

TEST_CASE("mapped file: a file that is replaced by another is not the one that is read",
          "[backends]") {
  const OnesFile file("replaced");
  const auto mapped = MappedFile::open(file.path);
  REQUIRE(mapped);
  REQUIRE(write_file(file.path, "another"));
  CHECK(sum(*mapped) == kBytes);
  CHECK(code_of(mapped->check_unchanged()).empty());
}

TEST_CASE("mapped file: threads read several files that are cut off", "[backends]") {
  const OnesFile files[] = {OnesFile("thread_0_"), OnesFile("thread_1_"), OnesFile("thread_2_")};
  std::vector<MappedFile> mapped;
  for (const OnesFile& file : files) mapped.push_back(MappedFile::open(file.path).value());
  for (const std::size_t i : {0, 2}) files[i].cut_off(0);
  std::vector<std::thread> threads;
  std::vector<std::size_t> sums(9);
  for (std::size_t i = 0; i < sums.size(); ++i)
    threads.emplace_back([&, i] { sums[i] = sum(mapped[i % 3]); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == (i % 3 == 1 ? kBytes : 0));
  CHECK(code_of(mapped[0].check_unchanged()) == "PW1275");
  CHECK(code_of(mapped[1].check_unchanged()).empty());
  CHECK(code_of(mapped[2].check_unchanged()) == "PW1275");
}

TEST_CASE("mapped file: other bus errors keep their handler", "[backends]") {
  const OnesFile file("mine"), other("other");
  CHECK(signal_of([&] {
          const auto mapped = MappedFile::open(file.path);
          fault_elsewhere(other.path);
        }) == SIGBUS);
  CHECK(signal_of([&] {
          std::signal(SIGBUS, [](int) { ::_exit(42); });
          const auto mapped = MappedFile::open(file.path);
          fault_elsewhere(other.path);
        }) == 42);
  CHECK(signal_of([&] {
          const auto mapped = MappedFile::open(file.path);
          ::raise(SIGBUS);
        }) == SIGBUS);
  CHECK(signal_of([&] {
          std::signal(SIGBUS, SIG_IGN);
          const auto mapped = MappedFile::open(file.path);
          ::raise(SIGBUS);
        }) == 0);
}

TEST_CASE("mapped file: a handler that was set since the last file is called first", "[backends]") {
  const OnesFile file("first"), second("second"), other("other");
  // As Python's faulthandler does: it puts back what was there before, and raises the signal.
  static struct sigaction before;
  const auto give_up = [](int signal) {
    ::sigaction(signal, &before, nullptr);
    ::raise(signal);
  };
  const auto install = [&] {
    struct sigaction own{};
    own.sa_handler = give_up;
    own.sa_flags = SA_NODEFER;
    ::sigaction(SIGBUS, &own, &before);
  };
  CHECK(signal_of([&] {
          const auto mapped = MappedFile::open(file.path);
          install();
          const auto next = MappedFile::open(second.path);
          static_cast<void>(::truncate(second.path.c_str(), 0));
          if (sum(*next) != 0 || next->check_unchanged()) ::_exit(1);
        }) == 0);
  CHECK(signal_of([&] {
          const auto mapped = MappedFile::open(file.path);
          install();
          const auto next = MappedFile::open(second.path);
          fault_elsewhere(other.path);
        }) == SIGBUS);
}

TEST_CASE("weights: tensors of a file that changed are not to be used", "[backends]") {
  const Graph graph = graph_of("in weight w: f32[64, 4096]  y = w + w  out y, w");
  const Tensor ones(DType::f32, {64, 4096});
  const OnesFile file("weights");
  REQUIRE(write_file(file.path, safetensors_text({{"w", ones.view()}})));
  Weights weights(graph, 1);
  {
    const auto opened = Safetensors::open(file.path);
    REQUIRE(opened);
    weights.give("w", opened->tensor(*opened->find("w")).value());
    weights.use(opened->file());
  }
  CHECK(code_of(weights.check_files()).empty());
  const Tensor given = weights.tensor("w", {}, {}).value();
  const Tensor kept = weights.kept(given);
  CHECK(kept.data() != given.data());
  CHECK(weights.kept(ones).data() == ones.data());
  file.cut_off(0);
  CHECK(code_of(weights.check_files()) == "PW1275");
}

}  // namespace
