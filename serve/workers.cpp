#include "serve/workers.hpp"

#include <cerrno>
#include <csignal>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lsp/frames.hpp"

namespace pw::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostWorkers = 4;
constexpr std::size_t kMostAnswer = 2 * kMostFrameBytes;

/// Leaves only the three standard streams open, and unblocks all signals.
pid_t start_worker(int input, int output, std::chrono::seconds most) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&how);
  ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&how, &none);
  ::posix_spawnattr_setsigdefault(&how, &all);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string seconds = std::to_string(most.count());
  std::string words[] = {"pwr", "--no-config", "serve", "--answer", "--time-limit", seconds};
  char* arguments[std::size(words) + 1] = {};
  for (std::size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
  pid_t process = 0;
  if (::posix_spawn(&process, "/proc/self/exe", &files, &how, arguments, environ) != 0) process = 0;
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  return process;
}

/// Sends one text and receives another concurrently. Returns false at the deadline.
class Exchange {
 public:
  Exchange(int to, int from, std::string question)
      : to_(to), from_(from), question_(std::move(question)) {
    ::fcntl(to_, F_SETFL, O_NONBLOCK);
  }
  ~Exchange() {
    close_input();
    ::close(from_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool run(Clock::time_point deadline) {
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) return false;
      pollfd both[] = {{from_, POLLIN, 0}, {to_, POLLOUT, 0}};
      const int ready = ::poll(both, to_ >= 0 ? 2 : 1, static_cast<int>(left));
      if (ready < 0 && errno != EINTR) return true;
      if (ready <= 0) continue;
      if (both[0].revents != 0 && !take()) return true;
      if (to_ >= 0 && both[1].revents != 0) send();
    }
  }
  [[nodiscard]] const std::string& answer() const { return answer_; }

 private:
  /// Returns false at the end, or if the answer exceeds the maximum size.
  bool take() {
    char buffer[1 << 16];
    const ssize_t got = ::read(from_, buffer, sizeof buffer);
    if (got <= 0) return got < 0 && errno == EINTR;
    answer_.append(buffer, static_cast<std::size_t>(got));
    return answer_.size() <= kMostAnswer;
  }
  void send() {
    const ssize_t sent = ::write(to_, question_.data() + sent_, question_.size() - sent_);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent > 0) sent_ += static_cast<std::size_t>(sent);
    if (sent < 0 || sent_ == question_.size()) close_input();
  }
  void close_input() {
    if (to_ >= 0) ::close(to_);
    to_ = -1;
  }

  int to_, from_;
  std::string question_, answer_;
  std::size_t sent_ = 0;
};

void read_answer(const std::string& bytes, WorkerResult& out) {
  FrameReader reader;
  reader.feed(bytes);
  auto answer = reader.next();
  auto picture = reader.next();
  if (!answer || !picture) return;
  out = {WorkerResult::End::answered, std::move(answer->content), std::move(picture->content)};
}

}  // namespace

std::shared_ptr<Workers::Running> Workers::begin(const std::string& page, int& to, int& from,
                                                 WorkerResult& out) {
  const std::lock_guard lock(mutex_);
  const auto before = running_.find(page);
  if (before != running_.end()) {
    before->second->cancelled = true;
    ::kill(before->second->process, SIGKILL);
    running_.erase(before);
  }
  out.end = stopped_ ? WorkerResult::End::stopped : WorkerResult::End::busy;
  if (stopped_ || running_.size() >= kMostWorkers) return nullptr;
  out.end = WorkerResult::End::failed;
  int input[2], output[2];
  if (::pipe2(input, O_CLOEXEC) != 0) return nullptr;
  if (::pipe2(output, O_CLOEXEC) != 0) {
    ::close(input[0]);
    ::close(input[1]);
    return nullptr;
  }
  auto running = std::make_shared<Running>();
  running->process = start_worker(input[0], output[1], most_);
  ::close(input[0]);
  ::close(output[1]);
  if (running->process == 0) {
    ::close(input[1]);
    ::close(output[0]);
    return nullptr;
  }
  to = input[1];
  from = output[0];
  running_[page] = running;
  return running;
}

/// Nothing else kills a process that was removed from the map, so its pid stays valid until it is
/// waited for.
void Workers::end(const std::string& page, const std::shared_ptr<Running>& running,
                  WorkerResult& out) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = running_.find(page);
    if (it != running_.end() && it->second == running) running_.erase(it);
    if (running->cancelled)
      out = {stopped_ ? WorkerResult::End::stopped : WorkerResult::End::cancelled, {}, {}};
  }
  ::kill(running->process, SIGKILL);
  int status = 0;
  while (::waitpid(running->process, &status, 0) < 0 && errno == EINTR) {
  }
  if (out.end == WorkerResult::End::failed && WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    out.end = WorkerResult::End::late;
}

WorkerResult Workers::run(const std::string& page, std::string_view question,
                          std::string_view graph) {
  WorkerResult out;
  int to = -1, from = -1;
  const std::shared_ptr<Running> running = begin(page, to, from, out);
  if (!running) return out;
  {
    Exchange exchange(to, from, framed(question) + framed(graph));
    if (exchange.run(Clock::now() + most_))
      read_answer(exchange.answer(), out);
    else
      out.end = WorkerResult::End::late;
  }
  end(page, running, out);
  return out;
}

void Workers::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& [page, running] : running_) {
    running->cancelled = true;
    ::kill(running->process, SIGKILL);
  }
  running_.clear();
}

}  // namespace pw::cli
