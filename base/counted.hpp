// Numbers with what they count: "1 rule", "2 rules".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace pw {

/// "pieces", "classes", "matches", "axes", "entries": of the noun, or of the last word of several.
[[nodiscard]] std::string plural_of(std::string_view noun);

/// "1 rule", "0 rules", "2 built-in steps".
template <std::integral Number>
[[nodiscard]] std::string counted(Number n, std::string_view noun) {
  return std::to_string(n) + " " + (n == 1 ? std::string(noun) : plural_of(noun));
}

/// "is" of one, else "are".
template <std::integral Number>
[[nodiscard]] constexpr std::string_view are(Number n) {
  return n == 1 ? "is" : "are";
}

}  // namespace pw
