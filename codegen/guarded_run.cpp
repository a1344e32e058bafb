// The guard is forked from a multithreaded program, so it calls only async-signal-safe functions
// and does not allocate.
#include "codegen/guarded_run.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace pw {
namespace {

// Signals that end the guard instead of an exit status.
constexpr int kLongSignal = SIGUSR1, kMuchSignal = SIGUSR2;
constexpr int kLifeline = 3;  // closed when this program ends
constexpr int kPause = 2;     // milliseconds between polls

/// The guard's data, created before the fork.
struct Job {
  std::vector<char*> arguments, environment;
  const char* log;
  const char* folder;  ///< null: none
  double seconds;
  std::int64_t log_bytes;
};

double now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Removes files only, because a compiler creates no folders.
void remove_folder(const char* path) {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY);
  if (folder < 0) return;
  alignas(8) char buffer[4096];
  for (long got = 0; (got = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < got;) {
      // u64 inode, u64 offset, u16 length, u8 type, name
      unsigned short length = 0;
      std::memcpy(&length, buffer + at + 16, sizeof length);
      ::unlinkat(folder, buffer + at + 19, 0);
      at += length;
    }
  }
  ::close(folder);
  ::rmdir(path);
}

[[noreturn]] void become_program(const Job& job) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  const int log = ::open(job.log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (nothing < 0 || log < 0) ::_exit(127);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::syscall(SYS_close_range, 3u, ~0u, 0u);
  ::execve(job.arguments[0], job.arguments.data(), job.environment.data());
  ::_exit(127);
}

/// Ends like the program, so that waiting for the guard waits for the program.
[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  ::raise(SIGKILL);
  ::_exit(127);
}

[[noreturn]] void stop(pid_t program, int signal) {
  ::kill(-program, SIGKILL);
  ::kill(program, SIGKILL);
  while (::waitpid(program, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(127);
}

[[noreturn]] void guard(const Job& job, int lifeline) {
  ::setpgid(0, 0);  // an interrupt from the terminal ends this program first
  if (lifeline != kLifeline) ::dup2(lifeline, kLifeline);
  ::syscall(SYS_close_range, unsigned{kLifeline + 1}, ~0u, 0u);  // other guards' lifelines too
  const pid_t program = ::fork();
  if (program == 0) become_program(job);
  if (program < 0) ::_exit(127);
  ::setpgid(program, program);
  const double end = now() + job.seconds;
  for (;;) {
    int status = 0;
    if (::waitpid(program, &status, WNOHANG) == program) end_as(status);
    pollfd line{kLifeline, POLLIN, 0};
    if (::poll(&line, 1, kPause) > 0) {
      ::kill(-program, SIGKILL);
      while (::waitpid(program, nullptr, 0) < 0 && errno == EINTR) {
      }
      if (job.folder != nullptr) remove_folder(job.folder);
      ::_exit(0);
    }
    if (now() > end) stop(program, kLongSignal);
    struct stat log{};
    if (::stat(job.log, &log) == 0 && log.st_size > job.log_bytes) stop(program, kMuchSignal);
  }
}

int status_of(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (WTERMSIG(status) == kLongSignal) return kTookTooLong;
  return WTERMSIG(status) == kMuchSignal ? kSaidTooMuch : kNoStatus;
}

}  // namespace

int guarded_run(std::vector<std::string> arguments, const std::string& log,
                const GuardLimits& limits) {
  Job job{{},
          {},
          log.c_str(),
          limits.folder.empty() ? nullptr : limits.folder.c_str(),
          limits.seconds,
          limits.log_bytes};
  for (std::string& a : arguments) job.arguments.push_back(a.data());
  job.arguments.push_back(nullptr);
  std::string temporary = "TMPDIR=" + limits.folder;  // a compiler's temporary files go there too
  for (char** e = environ; *e != nullptr; ++e)
    if (limits.folder.empty() || std::strncmp(*e, "TMPDIR=", 7) != 0) job.environment.push_back(*e);
  if (!limits.folder.empty()) job.environment.push_back(temporary.data());
  job.environment.push_back(nullptr);
  int line[2];
  if (::pipe2(line, O_CLOEXEC) != 0) return kNoStatus;
  const pid_t child = ::fork();
  if (child == 0) guard(job, line[0]);
  ::close(line[0]);
  int status = 0;
  bool ended = child > 0;
  while (ended && ::waitpid(child, &status, 0) < 0) ended = errno == EINTR;
  ::close(line[1]);
  return ended ? status_of(status) : kNoStatus;
}

}  // namespace pw
