// Text of strangers made safe for a terminal: nothing in it moves the cursor, sets a title or a
// colour, or turns the direction of writing.
#pragma once

#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace pw {

/// Whether a character can be shown as it is: none that controls the terminal, or turns
/// the direction of text.
[[nodiscard]] bool harmless(const Utf8Character& character);

/// One line: control characters, characters that override the direction of text, and bytes that are
/// no UTF-8 as `\x1b`, `\u{202e}`; a tab becomes a space.
[[nodiscard]] std::string printable(std::string_view text);
/// The same for several lines: line ends and tabs stay.
[[nodiscard]] std::string printable_lines(std::string_view text);
/// JSON text with the same characters as `\u009b`: they stand in strings only, and mean what they
/// did.
[[nodiscard]] std::string printable_json(std::string_view text);

}  // namespace pw
