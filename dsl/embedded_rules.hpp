// The rule library as text inside the program, so that `pwr` needs no further files. `path` is
// relative to `rules/` ("ops/norm.pwr"); entries are sorted by path; the views live as long as the
// program.
#pragma once

#include <span>
#include <string_view>

namespace pw {

struct EmbeddedFile {
  std::string_view path;
  std::string_view text;
};

std::span<const EmbeddedFile> embedded_rules();

/// Prefix of the path in the name of a source of the library.
inline constexpr std::string_view kLibrary = "<library>/";
[[nodiscard]] inline bool is_of_library(std::string_view source) {
  return source.starts_with(kLibrary);
}

}  // namespace pw
