// Converts places in a text to editors' lines and columns, both from 0; columns count UTF-16 units
// or UTF-8 bytes.
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

/// Lines of one text, which must outlive it. A line ends with `\n`, `\r\n` or `\r`.
class TextLines {
 public:
  explicit TextLines(std::string_view text);

  [[nodiscard]] std::size_t size() const { return begins_.size(); }
  /// Returns a line without its end.
  [[nodiscard]] std::string_view line(std::size_t number) const;
  /// Returns the place of an offset. One after the text is its end; one inside a character is its
  /// beginning. A byte that begins no character counts as one unit.
  [[nodiscard]] TextPlace place(std::size_t offset, ColumnUnit unit) const;
  /// Returns the offset of a place. A column after the line is its end, a line after the text the
  /// text's end; a column inside a character is its beginning.
  [[nodiscard]] std::uint32_t offset(TextPlace place, ColumnUnit unit) const;

 private:
  std::string_view text_;
  std::vector<std::uint32_t> begins_;
};

}  // namespace pw
