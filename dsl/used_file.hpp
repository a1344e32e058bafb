// Where the file that a `use` names is found.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/embedded_rules.hpp"

namespace pw {

/// By its path, with or without `.pwr`; null where the library has none of that name.
[[nodiscard]] const EmbeddedFile* embedded_file(std::string_view path);
/// All names by which embedded_file() finds one.
[[nodiscard]] std::vector<std::string> library_names();

/// What the name of a text begins with that is no file, a stranger's say: it uses the library only,
/// and no path that it names is looked at.
inline constexpr std::string_view kNoFile = "<page>/";

/// A file beside the one that names it, or one of the library; neither where there is none.
struct UsedFile {
  std::string path;
  const EmbeddedFile* embedded = nullptr;
};
[[nodiscard]] UsedFile find_used(const std::string& user, const std::string& path);

}  // namespace pw
