// The line that says what is being done, how fast, and for how long still. It stands below what is
// printed, on a terminal or when asked for, from half a second after the first word of it.
#pragma once

#include <mutex>

#include "pipeline/log.hpp"

namespace pw::cli {

struct Options;

/// What is done now; a thread of its own draws it.
void show_progress(const Progress& progress, const Options& options);
/// Takes the line away, for good.
void end_progress();

/// While it lives, the line is gone and other text can be printed.
class ProgressPause {
 public:
  ProgressPause();

 private:
  std::unique_lock<std::mutex> held_;
};

/// "pass fuse: 1200 of 54000 nodes, 4500/s, 12 s left"; "reading model.json, 2 s" where nothing is
/// counted. `seconds`: since it began.
[[nodiscard]] std::string progress_line(const Progress& progress, double seconds);

}  // namespace pw::cli
