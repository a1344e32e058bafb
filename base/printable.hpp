// Makes foreign text safe for a terminal: it cannot move the cursor, set a title or a colour, or
// change the direction of writing.
#pragma once

#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace pw {

/// Returns true if a character can be shown unchanged: it neither controls the terminal nor changes
/// the direction of text.
[[nodiscard]] bool harmless(const Utf8Character& character);

/// Returns one line with control characters, direction overrides and invalid UTF-8 bytes written as
/// `\x1b`, `\u{202e}`. A tab becomes a space.
[[nodiscard]] std::string printable(std::string_view text);
/// Like printable() for several lines: line ends and tabs stay.
[[nodiscard]] std::string printable_lines(std::string_view text);
/// Writes the same characters of a JSON text as `\u009b`. They occur in strings only, so the
/// meaning does not change.
[[nodiscard]] std::string printable_json(std::string_view text);

}  // namespace pw
