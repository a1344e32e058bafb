// Last-resort error handler: an escaped exception gives exit code 70 and a reproducer file; an
// interrupt gives 130.
#pragma once

#include <functional>

namespace pw::cli {

/// Runs the body. On an internal error, writes NAME-reproducer.txt (command, folder, message) into
/// the current folder.
int guarded(int argc, char** argv, const std::function<int()>& body);

}  // namespace pw::cli
