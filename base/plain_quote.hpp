// Quoted text without escapes.
#pragma once

#include <cstddef>
#include <string_view>

namespace pw {

/// Returns the position of the `quote` that ends the text from `at`; npos if the line, the text or
/// an escape comes first.
inline std::size_t end_of_plain_quote(std::string_view text, std::size_t at, char quote) {
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == quote) return at;
    if (c == '\\' || c == '\n') break;
  }
  return std::string_view::npos;
}

}  // namespace pw
