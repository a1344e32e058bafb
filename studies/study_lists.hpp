// Lists of texts as SQLite stores them: JSON arrays, which SQLite's functions and pandas can read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pw {

[[nodiscard]] std::string text_of_list(const std::vector<std::string>& list);
/// Parses a list; empty for any other text. Skips elements that are not texts.
[[nodiscard]] std::vector<std::string> list_of_text(std::string_view text);

/// Returns a unit as a JSON object: the order as a list, numbers as numbers, unknown values as
/// null.
[[nodiscard]] std::string study_row_text(const std::vector<std::string>& names,
                                         const std::vector<std::string>& cells);

}  // namespace pw
