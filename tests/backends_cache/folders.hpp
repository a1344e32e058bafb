// For tests: folders that are removed when the test ends, child processes, and objects to store.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "codegen/cache/cache.hpp"
#include "codegen/cache/digest.hpp"
#include "codegen/toolchain.hpp"
#include "tests/catch.hpp"

namespace pw::test {

inline KeyParts parts_of(int i) { return KeyParts().add("number", std::to_string(i)); }
inline std::string key_of(int i) { return parts_of(i).digest(); }
inline std::string object_of(int i) {
  return std::string(static_cast<std::size_t>(1000 + 37 * i), static_cast<char>('a' + i % 26)) +
         std::to_string(i);
}

/// Runs in a child process; its exit status, -signal if one ended it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Files under a folder whose names begin with `prefix`, sorted.
inline std::vector<std::string> files_of(const std::string& folder,
                                         const std::string& prefix = "") {
  std::vector<std::string> out;
  std::error_code gone;  // other processes may be writing here
  for (std::filesystem::recursive_directory_iterator at(folder, gone), end; !gone && at != end;
       at.increment(gone)) {
    if (at->is_regular_file(gone) && at->path().filename().string().rfind(prefix, 0) == 0)
      out.push_back(at->path());
    gone.clear();
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace pw::test
