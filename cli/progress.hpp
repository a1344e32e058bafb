// The progress line: current activity, rate, and remaining time. It appears below the output, on a
// terminal or on request, half a second after an activity starts.
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
