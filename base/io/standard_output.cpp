#include "base/io/standard_output.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/stat.h>

namespace pw {
namespace {

struct Failure {
  int why = 0;  ///< errno of the first
  bool reported = false;
  void remember() {
    if (why == 0) why = errno != 0 ? errno : EIO;
  }
};

Failure& failure() {
  static Failure first;
  return first;
}

}  // namespace

void write_standard_output(std::string_view bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) failure().remember();
}

void push_standard_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) failure().remember();
}

Status flush_standard_output() {
  push_standard_output();
  if (failure().why == 0 || failure().reported) return {};
  failure().reported = true;
  return fail(error_in("standard output", "PW0001",
                       std::string("cannot write standard output: ") + std::strerror(failure().why),
                       "the output is incomplete"));
}

bool names_standard_output(std::string_view path) {
  constexpr std::array<std::string_view, 4> kNames{"-", "/dev/stdout", "/dev/fd/1",
                                                   "/proc/self/fd/1"};
  return std::find(kNames.begin(), kNames.end(), path) != kNames.end();
}

bool names_stream(const std::string& path) {
  struct stat info{};
  return names_standard_output(path) ||
         (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode));
}

}  // namespace pw
