// Formats a command for reports.
#pragma once

#include <string>
#include <vector>

namespace pw::cli {

/// Returns the arguments quoted for a shell. Absolute paths lose their folders (see shown_path),
/// and output options (-o, --output, --report, --save, --dump) are omitted.
std::string shown_command(const std::string& program, const std::vector<std::string>& arguments);
/// Returns the arguments quoted for a shell, unchanged: a command to run next on this machine.
std::string next_command(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace pw::cli
