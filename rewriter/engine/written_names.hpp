// Names as the user wrote them.
#pragma once

#include <string>
#include <string_view>

namespace pw {

/// A text with `h` for every `h#2` and `h#1_3`: what a shared pattern, an optional node or a list
/// binds is numbered at each use, which is nothing to the reader of a message.
[[nodiscard]] std::string with_written_names(std::string_view text);

}  // namespace pw
