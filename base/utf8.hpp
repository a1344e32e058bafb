// Characters of UTF-8 text.
#pragma once

#include <cstddef>
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
/// Returns true for a byte that continues a character.
[[nodiscard]] inline bool continues_character(char c) { return (c & 0xc0) == 0x80; }
/// Returns the number of characters of a valid text.
[[nodiscard]] std::size_t count_characters(std::string_view text);
/// Returns true if the text consists of valid characters only.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace pw
