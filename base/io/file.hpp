// Reading whole files and writing them atomically (temporary in the same folder, then rename).
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/diagnostic.hpp"

namespace pw {

/// At most `limit` bytes (default 1 GiB); "-" reads standard input.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);
/// Never leaves a partial file; "-" writes standard output.
Status write_file(const std::string& path, std::string_view content);

/// Its size and the time of its last change: another text for a file that was written anew. Empty
/// where there is no such file.
[[nodiscard]] std::string file_stamp(const std::string& path);

}  // namespace pw
