// Commands as a report repeats them.
#pragma once

#include <string>
#include <vector>

namespace pw::cli {

/// The arguments as a shell takes them, absolute paths without their folders (see shown_path),
/// without where the answer is written to
/// (-o, --output, --report, --save).
std::string shown_command(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace pw::cli
