// Another program ends with its limits and with this one, and leaves nothing behind.
#include "codegen/guarded_run.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "codegen/toolchain.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

std::vector<std::string> shell(const std::string& text) { return {"/bin/sh", "-c", text}; }

bool alive(const std::string& pid) { return ::kill(std::stoi(pid), 0) == 0; }

/// Waits for it, for a while that no machine needs.
template <class Fact>
bool comes_true(const Fact& fact) {
  for (int i = 0; i < 30000 && !fact(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return fact();
}

}  // namespace

TEST_CASE("guarded run: the status is the program's, and its words are in the log", "[backends]") {
  const PrivateFolder folder;
  const std::string log = folder.path() + "/log";
  CHECK(guarded_run(shell("echo out; echo err >&2; exit 7"), log) == 7);
  CHECK(read_file(log).value() == "out\nerr\n");
  CHECK(guarded_run(shell("kill -9 $$"), log) == kNoStatus);
  CHECK(guarded_run({"/nowhere/at/all"}, log) == 127);
  GuardLimits limits;
  limits.folder = folder.path();
  CHECK(guarded_run(shell("echo $TMPDIR"), log, limits) == 0);
  CHECK(read_file(log).value() == folder.path() + "\n");
}

TEST_CASE(
    "guarded run: a command that takes too long or prints too much is ended with its children",
    "[backends]") {
  const PrivateFolder folder;
  const std::string log = folder.path() + "/log";
  std::string pid;
  GuardLimits brief;
  // On a machine with other work, the shell may need longer to begin.
  for (brief.seconds = 0.3; pid.empty() && brief.seconds < 100; brief.seconds *= 2) {
    CHECK(guarded_run(shell("sleep 1000 & echo $!; wait"), log, brief) == kTookTooLong);
    pid = read_file(log).value();
  }
  REQUIRE(!pid.empty());
  CHECK(comes_true([&] { return !alive(pid); }));
  GuardLimits quiet;
  quiet.log_bytes = 1 << 16;
  CHECK(guarded_run(shell("yes"), log, quiet) == kSaidTooMuch);
}

TEST_CASE("guarded run: where this program is killed, the other ends and its folder goes",
          "[backends]") {
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    std::string path, pid;
    {
      const PrivateFolder outer;
      const std::string pid_file = outer.path() + "/pid";
      const pid_t child = ::fork();
      if (child == 0) {
        std::signal(signal, SIG_DFL);
        const PrivateFolder folder;
        GuardLimits limits;
        limits.folder = folder.path();
        guarded_run(shell("touch $TMPDIR/a.o; echo $TMPDIR > " + pid_file + "; echo $$ > " +
                          pid_file + ".own; sleep 1000"),
                    folder.path() + "/log", limits);
        ::_exit(0);
      }
      REQUIRE(comes_true([&] {
        return std::filesystem::exists(pid_file + ".own") &&
               std::filesystem::file_size(pid_file + ".own") > 0;
      }));
      path = read_file(pid_file).value();
      path.pop_back();
      pid = read_file(pid_file + ".own").value();
      CHECK(std::filesystem::exists(path));
      ::kill(child, signal);
      ::waitpid(child, nullptr, 0);
    }
    CHECK(comes_true([&] { return !std::filesystem::exists(path); }));
    CHECK(comes_true([&] { return !alive(pid); }));
  }
}
