#include "pipeline/report/table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.hpp"
#include "base/quantities.hpp"
#include "base/utf8.hpp"

namespace pw {
namespace {

bool numeric(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,-+e% ") == std::string::npos &&
         text.find_first_of("0123456789") != std::string::npos;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

struct CsvValue {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool held) const { return held ? "true" : "false"; }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const { return fmt::format("{}", number); }
  std::string operator()(const std::string& text) const { return csv_field(text); }
  template <class Member>
  std::string operator()(const std::vector<Member>& list) const {
    return csv_field(fmt::format("{}", fmt::join(list, ", ")));
  }
  std::string operator()(const Cell::Counts& counts) const {
    return csv_field(counts_cell(counts).text);
  }
};

}  // namespace

Cell seconds_cell(double held) { return {seconds(held), held}; }
Cell yes_cell(bool holds, std::string otherwise) {
  return {holds ? "yes" : std::move(otherwise), holds};
}
Cell real_cell(double number, std::string shown) { return {std::move(shown), number}; }
Cell null_cell(std::string shown) { return {std::move(shown), std::monostate{}}; }
Cell list_cell(std::vector<std::int64_t> numbers, std::string_view separator) {
  std::string shown = fmt::format("{}", fmt::join(numbers, separator));
  return {std::move(shown), std::move(numbers)};
}
Cell counts_cell(Cell::Counts counts) {
  std::string shown;
  for (const auto& [name, count] : counts)
    shown += fmt::format("{}{} × {}", shown.empty() ? "" : ", ", name, count);
  return {std::move(shown), std::move(counts)};
}
Cell list_cell(std::vector<std::string> members, std::string_view separator) {
  std::string shown = fmt::format("{}", fmt::join(members, separator));
  return {std::move(shown), std::move(members)};
}

std::string Column::key_of(std::string title) {
  std::replace(title.begin(), title.end(), ' ', '_');
  return title;
}

std::string Table::csv() const {
  std::string out;
  for (const Column& column : columns_)
    out += (&column == columns_.data() ? "" : ",") + csv_field(column.key);
  out += "\n";
  for (const std::vector<Cell>& row : rows_) {
    for (const Cell& cell : row)
      out += (&cell == row.data() ? "" : ",") + std::visit(CsvValue(), cell.value);
    out += "\n";
  }
  return out;
}

std::string Table::aligned() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns_) lines.front().push_back(column.title);
  for (const std::vector<Cell>& row : rows_) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const Cell& cell : row) line.push_back(printable(cell.text));  // one line, always
  }
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t w = 0;
    bool numbers = !rows_.empty();
    for (std::size_t r = 0; r < lines.size(); ++r) {
      const std::string& cell = lines[r][c];
      w = std::max(w, count_characters(cell));
      numbers = numbers && (r == 0 || cell.empty() || cell == "–" || numeric(cell));
    }
    widths.push_back(w);
    right.push_back(numbers);
  }
  std::string out;
  for (const std::vector<std::string>& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string pad(widths[c] - count_characters(line[c]), ' ');
      text += (c ? "  " : "") + (right[c] ? pad + line[c] : line[c] + pad);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

std::string Table::print(const std::string& format) const {
  if (format == "json") return to_json(*this);
  return format == "csv" ? csv() : aligned();
}

std::string Answer::print(const std::string& format) const {
  if (format == "json") return to_json(*this);
  std::string out;
  const Table* first = nullptr;
  for (const auto& [key, member] : members) {
    const auto* table = std::get_if<Table>(&member);
    if (table == nullptr) continue;
    if (first == nullptr) first = table;
    if (format != "table" || !table->empty())
      out += (out.empty() ? "" : "\n") + table->print(format);
  }
  return out.empty() && first != nullptr ? first->print(format) : out;
}

}  // namespace pw
