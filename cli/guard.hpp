// The last line of defence of a program: what escapes becomes exit code 70 and a file that tells
// how to get there again; an interrupt ends with 130.
#pragma once

#include <functional>

namespace pw::cli {

/// Runs the body. On an internal error writes NAME-reproducer.txt (the command, the folder, the
/// message) into the current folder, for a report.
int guarded(int argc, char** argv, const std::function<int()>& body);

}  // namespace pw::cli
