// Characters of UTF-8 text.
#pragma once

#include <cstdint>
#include <string_view>

namespace pw {

/// First character of a non-empty text. A byte that does not begin a character has length 0.
struct Utf8Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  ///< in bytes
};
/// Decodes the first character. Refuses overlong forms, surrogates, and codes above U+10FFFF.
[[nodiscard]] Utf8Character first_character(std::string_view text);
/// Returns true if the text consists of valid characters only.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace pw
