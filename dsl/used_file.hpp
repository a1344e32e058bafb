// Finds the file that a `use` names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/embedded_rules.hpp"

namespace pw {

/// Returns a library file by its path, with or without `.pwr`; null if the library has none of that
/// name.
[[nodiscard]] const EmbeddedFile* embedded_file(std::string_view path);
/// Returns all names by which embedded_file() finds a file.
[[nodiscard]] std::vector<std::string> library_names();

/// Prefix of the name of an untrusted text that is not a file. It may use the library only, and
/// paths that it names are not followed.
inline constexpr std::string_view kNoFile = "<page>/";

/// File next to the one that names it, or a library file; neither if there is none.
struct UsedFile {
  std::string path;
  const EmbeddedFile* embedded = nullptr;
};
[[nodiscard]] UsedFile find_used(const std::string& user, const std::string& path);

}  // namespace pw
