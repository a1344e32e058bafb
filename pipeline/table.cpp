// Exports the printing of tables.
#include "pipeline/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/printable.hpp"

namespace pw {
namespace {

bool numeric(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,-+e% ") == std::string::npos &&
         text.find_first_of("0123456789") != std::string::npos;
}

bool plain_number(const std::string& text) {  // as JSON writes it
  if (text.empty() || text.size() > 18) return false;
  std::size_t at = text[0] == '-' ? 1 : 0;
  return at < text.size() && text.find_first_not_of("0123456789", at) == std::string::npos &&
         (text[at] != '0' || text.size() == at + 1);
}

std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::string Table::print(const std::string& format) const {
  std::string out;
  if (format == "json") {
    out = "[";
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      out += r ? ",\n  {" : "\n  {";
      for (std::size_t c = 0; c < columns_.size(); ++c)
        out += fmt::format("{}{}: {}", c ? ", " : "", json_string(columns_[c]),
                           plain_number(rows_[r][c]) ? rows_[r][c] : json_string(rows_[r][c]));
      out += "}";
    }
    return printable_json(out + (rows_.empty() ? "]\n" : "\n]\n"));
  }
  if (format == "csv") {
    for (std::size_t c = 0; c < columns_.size(); ++c) out += (c ? "," : "") + csv(columns_[c]);
    out += "\n";
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) out += (c ? "," : "") + csv(row[c]);
      out += "\n";
    }
    return out;
  }
  std::vector<std::vector<std::string>> rows = rows_;
  for (auto& row : rows)  // a cell is one line, whatever a name holds
    for (std::string& cell : row) cell = printable(cell);
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t w = width(columns_[c]);
    bool numbers = !rows.empty();
    for (const auto& row : rows) {
      w = std::max(w, width(row[c]));
      numbers = numbers && (row[c].empty() || row[c] == "–" || numeric(row[c]));
    }
    widths.push_back(w);
    right.push_back(numbers);
  }
  auto line = [&](const std::vector<std::string>& row) {
    std::string text;
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::string pad(widths[c] - width(row[c]), ' ');
      text += (c ? "  " : "") + (right[c] ? pad + row[c] : row[c] + pad);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(columns_);
  for (const auto& row : rows) line(row);
  return out;
}

}  // namespace pw
