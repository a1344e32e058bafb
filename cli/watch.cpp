#include "cli/watch.hpp"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/io/read_paths.hpp"
#include "base/io/write_all.hpp"
#include "base/printable.hpp"
#include "cli/output.hpp"
#include "cli/session.hpp"

namespace pw::cli {
namespace {

constexpr auto kPause = std::chrono::milliseconds(100);
constexpr auto kSettle = std::chrono::milliseconds(50);  // an editor may write in several steps

std::string receive(int from) {
  std::string out;
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

/// Runs the body in a child with this process's standard streams. Returns the paths that it read
/// and their stamps, each terminated by a zero byte.
std::string run_child(const std::function<int()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    const int code = finish_output(body());
    for (const ReadPath& read : read_paths())
      write_all(ends[1], read.path + '\0' + read.stamp + '\0');
    ::_exit(code);
  }
  ::close(ends[1]);
  std::string paths = child > 0 ? receive(ends[0]) : "";
  ::close(ends[0]);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return paths;
}

/// Attributes by which a changed file is detected, by path.
using Stamps = std::map<std::string, std::string>;

Stamps stamps_of(const std::string& read) {
  Stamps out;
  for (std::size_t at = 0; at < read.size();) {
    const std::size_t middle = read.find('\0', at), end = read.find('\0', middle + 1);
    out[read.substr(at, middle - at)] = read.substr(middle + 1, end - middle - 1);
    at = end + 1;
  }
  return out;
}

/// Returns the rule files below a folder, to detect new ones.
void add_folder(Stamps& out, const std::string& folder) {
  std::error_code ignored;
  for (std::filesystem::recursive_directory_iterator at(folder, ignored), end;
       !ignored && at != end; at.increment(ignored))
    if (at->path().extension() == ".pwr")
      out.emplace(at->path().string(), file_stamp(at->path().string()));
}

Stamps now(const Stamps& before, const std::vector<std::string>& folders) {
  Stamps out;
  for (const auto& [path, stamp] : before) out[path] = file_stamp(path);
  for (const std::string& folder : folders) add_folder(out, folder);
  return out;
}

/// Returns a path that is new or has a different stamp; empty if there is none.
std::string changed_path(const Stamps& before, const Stamps& after) {
  for (const auto& [path, stamp] : after)
    if (const auto old = before.find(path); old == before.end() || old->second != stamp)
      return path;
  return "";
}

}  // namespace

bool wants_watch(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i)
    if (std::string_view(argv[i]) == "--watch") return true;
  return false;
}

int watch(int argc, char** argv, const std::function<int()>& body) {
  std::vector<std::string> folders;
  std::error_code ignored;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-") {
      print_error(
          "error: --watch cannot be used with standard input, which can be read only once\n");
      return kUsage;
    }
    if (std::filesystem::is_directory(argv[i], ignored)) folders.emplace_back(argv[i]);
  }
  while (true) {
    Stamps before;
    for (const std::string& folder : folders) add_folder(before, folder);
    for (auto& [path, stamp] : stamps_of(run_child(body))) before[path] = stamp;
    std::string changed;
    while (changed.empty()) {
      std::this_thread::sleep_for(kPause);
      changed = changed_path(before, now(before, folders));
    }
    std::this_thread::sleep_for(kSettle);
    print_error(fmt::format("\n— {} has changed\n", printable(changed)));
  }
}

}  // namespace pw::cli
