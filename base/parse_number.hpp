// Numbers that fill a whole text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace pw {

/// Returns the number that the text consists of; nothing for other text, or if it is out of range.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number out{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end ? std::optional(out) : std::nullopt;
}

}  // namespace pw
