// Implements --watch: reruns a command whenever a file that it read changes.
#pragma once

#include <functional>

namespace pw::cli {

/// Returns true if the command line contains --watch.
[[nodiscard]] bool wants_watch(int argc, char** argv);
/// Runs the body in a child process, waits until a file that it read changes or a rule file appears
/// in a named folder, and repeats forever. Returns kUsage if standard input would be read.
int watch(int argc, char** argv, const std::function<int()>& body);

}  // namespace pw::cli
