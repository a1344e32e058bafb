#include "cli/output.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#include "base/io/standard_output.hpp"
#include "base/io/write_all.hpp"
#include "base/printable.hpp"
#include "cli/progress.hpp"
#include "cli/session.hpp"

namespace pw::cli {
namespace {

bool standard_output_taken = false;

/// Blocks SIGPIPE in this thread, and discards the one caused by a write.
class PipeSignalHeld {
 public:
  PipeSignalHeld() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  PipeSignalHeld(const PipeSignalHeld&) = delete;
  PipeSignalHeld& operator=(const PipeSignalHeld&) = delete;
  ~PipeSignalHeld() {
    const timespec at_once{};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{}, before_{};
};

}  // namespace

void print_out(std::string_view text) { print_rendered(printable_lines(text)); }

void print_rendered(std::string_view text) {
  if (standard_output_taken) return print_error(text);
  const ProgressPause pause;
  write_standard_output(text);
  if (::isatty(STDOUT_FILENO) != 0) push_standard_output();  // before the line comes back
}

void take_standard_output_for(std::string_view path) {
  standard_output_taken = standard_output_taken || names_standard_output(path);
}

void print_error(std::string_view text) {
  const ProgressPause pause;
  const PipeSignalHeld held;
  write_all(STDERR_FILENO, text);
}

void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one: those below are open.
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int finish_output(int code) {
  end_progress();
  const auto flushed = flush_standard_output();
  if (flushed) return code;
  print_error(render(flushed.error(), SourceMap()));
  return code == kOk || code == kNegative ? kInvalidInput : code;
}

}  // namespace pw::cli
