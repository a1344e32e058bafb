// Runs a program under a guard process. The guard ends the program if it exceeds its time or output
// limit. If this process dies, the guard ends the program and removes its folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pw {

struct GuardLimits {
  double seconds = 600;
  std::int64_t log_bytes = std::int64_t{1} << 24;
  /// Folder for the program's temporary files; the guard removes it if this process dies.
  std::string folder;
};

/// Return values of guarded_run in place of an exit status.
inline constexpr int kNoStatus = -1, kTookTooLong = -2, kSaidTooMuch = -3;

/// Runs a program with empty input and its output in the file `log`. Returns the exit status, or
/// one of the values above if it could not run, was killed, or exceeded a limit.
int guarded_run(std::vector<std::string> arguments, const std::string& log,
                const GuardLimits& limits = {});

}  // namespace pw
