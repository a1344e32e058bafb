// Removes blanks around a text.
#pragma once

#include <string_view>

namespace pw {

/// Returns the part of the text without spaces, tabs and line ends on either side.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

}  // namespace pw
