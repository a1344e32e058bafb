// Numbers with the noun they count: "1 rule", "2 rules".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace pw {

/// Returns the plural of a noun, or of the last of several words: "pieces", "classes", "matches",
/// "axes", "entries".
[[nodiscard]] std::string plural_of(std::string_view noun);

/// Returns a count with its noun: "1 rule", "0 rules", "2 built-in steps".
template <std::integral Number>
[[nodiscard]] std::string counted(Number n, std::string_view noun) {
  return std::to_string(n) + " " + (n == 1 ? std::string(noun) : plural_of(noun));
}

/// Returns "is" for one, else "are".
template <std::integral Number>
[[nodiscard]] constexpr std::string_view are(Number n) {
  return n == 1 ? "is" : "are";
}

}  // namespace pw
