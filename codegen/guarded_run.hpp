// Runs another program under a guard: a process of its own that ends it when it runs too long or
// prints too much, and that ends it and removes its folder when this program is killed meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pw {

struct GuardLimits {
  double seconds = 600;
  std::int64_t log_bytes = std::int64_t{1} << 24;
  /// Where the program puts what it needs for a while; removed by the guard if this program dies.
  std::string folder;
};

/// What guarded_run returns instead of an exit status.
inline constexpr int kNoStatus = -1, kTookTooLong = -2, kSaidTooMuch = -3;

/// Runs a program with its output in the file `log` and nothing to read; the exit status, or one of
/// the above: it could not be run or was killed, or went beyond a limit.
int guarded_run(std::vector<std::string> arguments, const std::string& log,
                const GuardLimits& limits = {});

}  // namespace pw
