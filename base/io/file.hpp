// Reading whole files and writing them atomically (temporary in the same folder, then rename).
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw {

/// Reads at most `limit` bytes (default 1 GiB); "-" reads standard input.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);
/// Writes a file and never leaves a partial one; "-" writes standard output.
Status write_file(const std::string& path, std::string_view content);

/// Returns a text made of the file's size and modification time, which changes when the file is
/// rewritten. Empty if there is no such file.
[[nodiscard]] std::string file_stamp(const std::string& path);

}  // namespace pw
