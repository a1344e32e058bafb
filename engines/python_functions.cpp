#include "engines/python_functions.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engines/python_call_json.hpp"

namespace pw {
namespace {

constexpr const char* kInterpreter = "python3";
constexpr std::uint64_t kMostText = std::uint64_t{1} << 26;

/// One process that answers calls sequentially; concurrent ranks wait for each other.
class PythonProcess {
 public:
  PythonProcess() = default;
  ~PythonProcess() { end(); }
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  /// Returns false and sets `errno` if it cannot be started.
  bool start(const std::string& path) {
    int both[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) return false;
    channel_ = both[0];
    const std::string program(python_functions_program());
    std::array<std::string, 4> words{kInterpreter, "-c", program, path};
    std::array<char*, 5> arguments{};
    for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, both[1], STDIN_FILENO);
    const int failed =
        ::posix_spawnp(&process_, kInterpreter, &files, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::close(both[1]);
    if (failed != 0) process_ = 0;
    errno = failed;
    return failed == 0;
  }

  [[nodiscard]] std::mutex& turn() { return turn_; }

  bool send(const void* bytes, std::size_t size) {
    const auto* at = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t sent = ::send(channel_, at, size, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      at += sent;
      size -= static_cast<std::size_t>(sent);
    }
    return true;
  }
  bool send_text(const std::string& text) {
    std::array<unsigned char, 8> length{};
    for (std::size_t i = 0; i < length.size(); ++i)
      length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
    return send(length.data(), length.size()) && send(text.data(), text.size());
  }
  bool take(void* bytes, std::size_t size) {
    auto* at = static_cast<char*>(bytes);
    while (size > 0) {
      const ssize_t got = ::recv(channel_, at, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }
  PythonAnswer take_answer() {
    std::array<unsigned char, 8> bytes{};
    std::uint64_t length = 0;
    if (!take(bytes.data(), bytes.size())) return ended();
    for (std::size_t i = 0; i < bytes.size(); ++i) length |= std::uint64_t{bytes[i]} << (8 * i);
    if (length > kMostText) return wrong("its process sent a malformed answer");
    std::string text(length, '\0');
    return take(text.data(), text.size()) ? read_python_answer(text) : ended();
  }

  /// After an invalid answer the following bytes cannot be assigned.
  void end() {
    if (channel_ >= 0) ::close(channel_);
    channel_ = -1;
    if (process_ > 0) wait_for_end();
    process_ = 0;
  }

  static PythonAnswer wrong(std::string reason) {
    PythonAnswer out;
    out.error = std::move(reason);
    return out;
  }
  /// Reports how the process ended, if it did.
  PythonAnswer ended() {
    ::close(channel_);
    channel_ = -1;
    const int status = process_ > 0 ? wait_for_end() : 0;
    process_ = 0;
    if (WIFSIGNALED(status))
      return wrong(fmt::format("its process was killed by signal {}", WTERMSIG(status)));
    return wrong(fmt::format("its process exited with {}", WEXITSTATUS(status)));
  }

 private:
  int wait_for_end() {
    constexpr auto kStep = std::chrono::milliseconds(5);
    constexpr int kSteps = 400;
    int status = 0;
    for (int i = 0; i < kSteps; ++i) {
      if (::waitpid(process_, &status, WNOHANG) != 0) return status;
      std::this_thread::sleep_for(kStep);
    }
    ::kill(process_, SIGKILL);
    ::waitpid(process_, &status, 0);
    return status;
  }

  std::mutex turn_;
  int channel_ = -1;
  pid_t process_ = 0;
};

tl::unexpected<Diagnostics> failed_call(const HostCall& call, const PythonAnswer& answer) {
  std::string text = fmt::format("the host function of {} failed: {}", call.op, answer.error);
  return fail(error_in("node " + call.node, "PW1214", std::move(text),
                       answer.place.empty() ? "" : "at " + answer.place));
}

/// Destinations of returned arrays: written operands, then results that have readers.
std::vector<std::pair<std::string, TensorView>> places_of(const HostCall& call) {
  std::vector<std::pair<std::string, TensorView>> out;
  for (const std::size_t i : call.writes)
    out.emplace_back(fmt::format("written operand {}", i), *call.operands[i]);
  for (std::size_t i = 0; i < call.results.size(); ++i)
    if (call.results[i].data != nullptr)
      out.emplace_back(fmt::format("result {}", i), call.results[i]);
  return out;
}

/// Returns what is wrong with an answer; empty if it fits.
std::string misfit(const PythonAnswer& answer,
                   const std::vector<std::pair<std::string, TensorView>>& places) {
  if (answer.arrays.size() != places.size()) return "it returned a different number of arrays";
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& [what, place] = places[i];
    const PythonAnswer::Array& given = answer.arrays[i];
    if (given.extents != place.extents)
      return fmt::format("{} has the shape ({}), but its type requires ({})", what,
                         fmt::join(given.extents, ", "), fmt::join(place.extents, ", "));
    if (given.dtype != numpy_dtype(place.dtype))
      return fmt::format("{} is an array of {}, but {} requires {}", what, given.dtype,
                         name(place.dtype), numpy_dtype(place.dtype));
  }
  return {};
}

Status run(PythonProcess& process, const std::string& function, const HostCall& call) {
  const std::lock_guard lock(process.turn());
  const PythonCallText text = python_call_text(call, function);
  bool sent = process.send_text(text.text);
  for (const TensorView* operand : text.sent)
    sent = sent && process.send(operand->data, operand->bytes());
  PythonAnswer answer = sent ? process.take_answer() : process.ended();
  const auto places = places_of(call);
  if (answer.error.empty()) answer.error = misfit(answer, places);
  for (const auto& [what, place] : places) {
    if (!answer.error.empty()) break;
    if (!process.take(place.data, place.bytes())) answer = process.ended();
  }
  if (answer.error.empty()) return {};
  if (!answer.arrays.empty()) process.end();
  return failed_call(call, answer);
}

}  // namespace

Status give_python_functions(Context& context, const std::string& path) {
  const auto refused = [&](std::string message, std::string help) {
    return fail(error_in("host functions " + path, "PW1229", std::move(message), std::move(help)));
  };
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return refused("the file does not exist", "name a Python file");
  const auto process = std::make_shared<PythonProcess>();
  if (!process->start(path))
    return refused(fmt::format("{} cannot be started: {}", kInterpreter, std::strerror(errno)),
                   "put a Python with numpy first on PATH");
  const PythonAnswer answer = process->take_answer();
  if (!answer.error.empty())
    return refused(answer.error, answer.place.empty() ? "" : "at " + answer.place);
  for (const std::string& function : answer.functions)
    give_host_function(context, function, [process, function](const HostCall& call) {
      return run(*process, function, call);
    });
  return {};
}

}  // namespace pw
