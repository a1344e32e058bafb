// Places in a text as editors count them: lines and columns from 0, columns in units of UTF-16 or
// in bytes of UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

enum class ColumnUnit : std::uint8_t { utf8, utf16 };

struct TextPlace {
  std::uint32_t line = 0, column = 0;
  friend bool operator==(TextPlace, TextPlace) = default;
};

/// The lines of one text, which must outlive it. A line ends with `\n`, `\r\n` or `\r`.
class TextLines {
 public:
  explicit TextLines(std::string_view text);

  [[nodiscard]] std::size_t size() const { return begins_.size(); }
  /// Without its end.
  [[nodiscard]] std::string_view line(std::size_t number) const;
  /// An offset behind the text is its end; one inside of a character is its beginning. A byte that
  /// begins no character counts as one unit.
  [[nodiscard]] TextPlace place(std::size_t offset, ColumnUnit unit) const;
  /// A column behind the line is its end, a line behind the text the text's; a column inside of a
  /// character is its beginning.
  [[nodiscard]] std::uint32_t offset(TextPlace place, ColumnUnit unit) const;

 private:
  std::string_view text_;
  std::vector<std::uint32_t> begins_;
};

}  // namespace pw
