// Messages from the stages while they run. The caller decides whether to print, keep, or discard
// them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/diagnostic.hpp"
#include "base/progress.hpp"

namespace pw {

/// The current activity. Consecutive values with the same `what` continue one activity.
struct Progress {
  std::string what;
  std::size_t done = 0, total = 0;  ///< 0 if unknown
  std::string unit = {};            ///< "nodes"
};

struct Log {
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  /// Receives progress; each value replaces the previous one.
  std::function<void(const Progress&)> progress = [](const Progress&) {};
  std::function<void(const Diagnostics&)> warn = [](const Diagnostics&) {};
};

/// Returns a progress callback that reports work on `of` to the log, which must outlive it.
[[nodiscard]] inline StageProgress progress_to(const Log& log, std::string of) {
  return [&log, of = std::move(of)](std::string_view what, std::size_t done, std::size_t total,
                                    std::string_view unit) {
    log.progress({std::string(what) + " " + of, done, total, std::string(unit)});
  };
}

}  // namespace pw
