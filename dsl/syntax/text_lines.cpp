#include "dsl/syntax/text_lines.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace pw {
namespace {

struct Width {
  std::size_t bytes = 1, units = 1;
};

Width first_width(std::string_view text, ColumnUnit unit) {
  const Utf8Character c = first_character(text);
  if (c.length == 0) return {};
  return {c.length, unit == ColumnUnit::utf8 ? c.length : c.code > 0xffff ? 2u : 1u};
}

}  // namespace

TextLines::TextLines(std::string_view text) : text_(text), begins_{0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    if (text[i] == '\n' || text[i] == '\r') begins_.push_back(static_cast<std::uint32_t>(i + 1));
  }
}

std::string_view TextLines::line(std::size_t number) const {
  const std::size_t begin = begins_[number];
  std::size_t end = number + 1 < begins_.size() ? begins_[number + 1] : text_.size();
  while (end > begin && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
  return text_.substr(begin, end - begin);
}

TextPlace TextLines::place(std::size_t offset, ColumnUnit unit) const {
  offset = std::min(offset, text_.size());
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), offset);
  const auto number = static_cast<std::size_t>(after - begins_.begin()) - 1;
  std::string_view rest = line(number);
  std::size_t left = offset - begins_[number];
  TextPlace out{static_cast<std::uint32_t>(number), 0};
  while (!rest.empty()) {
    const Width width = first_width(rest, unit);
    if (width.bytes > left) break;
    left -= width.bytes;
    out.column += static_cast<std::uint32_t>(width.units);
    rest.remove_prefix(width.bytes);
  }
  return out;
}

std::uint32_t TextLines::offset(TextPlace place, ColumnUnit unit) const {
  if (place.line >= begins_.size()) return static_cast<std::uint32_t>(text_.size());
  std::string_view rest = line(place.line);
  std::size_t at = begins_[place.line], left = place.column;
  while (!rest.empty()) {
    const Width width = first_width(rest, unit);
    if (width.units > left) break;
    left -= width.units;
    at += width.bytes;
    rest.remove_prefix(width.bytes);
  }
  return static_cast<std::uint32_t>(at);
}

}  // namespace pw
