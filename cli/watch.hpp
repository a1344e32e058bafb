// --watch: a command again and again, whenever a file that it read changes.
#pragma once

#include <functional>

namespace pw::cli {

/// Whether the command line asks for it.
[[nodiscard]] bool wants_watch(int argc, char** argv);
/// Runs the body in a child process, waits until a file that it read changes or a rule file appears
/// in a folder that is named, and runs it again; for ever. kUsage where standard input is to be
/// read.
int watch(int argc, char** argv, const std::function<int()>& body);

}  // namespace pw::cli
