// The line that says what is being done, how fast, and for how long still. It stands below what is
// printed, on a terminal or when asked for, from half a second after the first word of it.
#pragma once

#include <mutex>

#include "pipeline/log.hpp"

namespace pw::cli {

struct Options;

/// Shows the current activity; a background thread draws it.
void show_progress(const Progress& progress, const Options& options);
/// Removes the line permanently.
void end_progress();

/// Hides the line during its lifetime, so that other text can be printed.
class ProgressPause {
 public:
  ProgressPause();

 private:
  std::unique_lock<std::mutex> held_;
};

/// Returns "pass fuse: 1200 of 54000 nodes, 4500/s, 12 s left", or "reading model.json, 2 s"
/// without counts. `seconds` is the elapsed time.
[[nodiscard]] std::string progress_line(const Progress& progress, double seconds);

}  // namespace pw::cli
