// Names as the user wrote them.
#pragma once

#include <string>
#include <string_view>

namespace pw {

/// Returns the text with `h` for every `h#2` and `h#1_3`. Names bound by a shared pattern, an
/// optional node or a list are numbered at each use, and the number means nothing to a reader.
[[nodiscard]] std::string with_written_names(std::string_view text);

}  // namespace pw
