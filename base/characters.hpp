// ASCII text, whatever the locale: classes of characters, names, and quotes without escapes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace pw {

[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
[[nodiscard]] constexpr bool is_letter_or_digit(char c) { return is_letter(c) || is_digit(c); }
/// Returns true for the characters of a name: letters, digits and underscores.
[[nodiscard]] constexpr bool is_in_name(char c) { return is_letter_or_digit(c) || c == '_'; }
/// Returns true for the characters at which a name can begin.
[[nodiscard]] constexpr bool begins_name(char c) { return is_letter(c) || c == '_'; }

[[nodiscard]] inline bool is_name(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) && std::all_of(text.begin(), text.end(), is_in_name);
}
/// Returns true for one or more digits.
[[nodiscard]] inline bool are_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}
/// Replaces every character that a name cannot contain by an underscore.
[[nodiscard]] inline std::string as_name(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (!is_in_name(c)) c = '_';
  return out;
}

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
