// Conversion between paths and URIs: `file:///home/me/my%20rules.pwr`.
#pragma once

#include <string>
#include <string_view>

namespace pw::cli {

/// Returns the path of a file URI; empty for any other.
[[nodiscard]] std::string path_of_uri(std::string_view uri);
[[nodiscard]] std::string uri_of_path(std::string_view path);

}  // namespace pw::cli
