// Characters of UTF-8 text.
#pragma once

#include <cstdint>
#include <string_view>

namespace pw {

/// The first character of a text that is not empty. A byte that begins none has length 0.
struct Utf8Character {
  std::uint32_t code = 0;
  std::size_t length = 0;  ///< in bytes
};
/// Refuses overlong forms, surrogates, and codes above U+10FFFF.
[[nodiscard]] Utf8Character first_character(std::string_view text);
/// Whether it is made of such characters alone.
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace pw
