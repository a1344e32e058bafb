// Commands as a report repeats them.
#pragma once

#include <string>
#include <vector>

namespace pw::cli {

/// The arguments as a shell takes them: absolute paths without their folders (see shown_path), and
/// without where answers are written to (-o, --output, --report, --save, --dump).
std::string shown_command(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace pw::cli
