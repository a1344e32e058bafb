// Lists of texts as SQLite holds them: JSON arrays, which its functions and pandas read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pw {

[[nodiscard]] std::string text_of_list(const std::vector<std::string>& list);
/// Empty for a text that is no list; what is no text in it is left out.
[[nodiscard]] std::vector<std::string> list_of_text(std::string_view text);

/// A unit as a JSON object: the order as a list, numbers as such, what is not known as null.
[[nodiscard]] std::string study_row_text(const std::vector<std::string>& names,
                                         const std::vector<std::string>& cells);

}  // namespace pw
