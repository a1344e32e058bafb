// What the stages say while they work. Callers print it, keep it, or let it be.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/diagnostic.hpp"
#include "base/progress.hpp"

namespace pw {

/// What is being done now. One with the same `what` goes on with what the last one began.
struct Progress {
  std::string what;
  std::size_t done = 0, total = 0;  ///< 0: not known
  std::string unit = {};            ///< "nodes"
};

struct Log {
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  /// Each replaces the one before.
  std::function<void(const Progress&)> progress = [](const Progress&) {};
  std::function<void(const Diagnostics&)> warn = [](const Diagnostics&) {};
};

/// What a stage says of its work on `of`, told to the log, which must live as long.
[[nodiscard]] inline StageProgress told_to(const Log& log, std::string of) {
  return [&log, of = std::move(of)](std::string_view what, std::size_t done, std::size_t total,
                                    std::string_view unit) {
    log.progress({std::string(what) + " " + of, done, total, std::string(unit)});
  };
}

}  // namespace pw
