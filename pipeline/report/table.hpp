// Rows with named columns: what commands print, what reports hold, and what programs read as JSON.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pw {

/// A cell: what people read, and the value that programs do.
struct Cell {
  using Counts = std::vector<std::pair<std::string, std::int64_t>>;  ///< an object of numbers
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                             std::vector<std::string>, std::vector<std::int64_t>, Counts>;

  Cell(std::string shown) : text(shown), value(std::move(shown)) {}
  Cell(std::string_view shown) : Cell(std::string(shown)) {}
  Cell(const char* shown) : Cell(std::string(shown)) {}
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  Cell(Number number) : text(std::to_string(number)), value(static_cast<std::int64_t>(number)) {}
  Cell(std::string shown, Value held) : text(std::move(shown)), value(std::move(held)) {}

  std::string text;
  Value value;  ///< monostate: null
};

/// Seconds, shown as "3.4 ms"; the column's key ends in `_s`.
[[nodiscard]] Cell seconds_cell(double seconds);
/// "yes", or what is shown otherwise.
[[nodiscard]] Cell yes_cell(bool holds, std::string otherwise = {});
/// A number that is shown rounded.
[[nodiscard]] Cell real_cell(double number, std::string shown);
/// A list, shown with `separator` between its members.
[[nodiscard]] Cell list_cell(std::vector<std::string> members, std::string_view separator = ", ");
[[nodiscard]] Cell list_cell(std::vector<std::int64_t> numbers, std::string_view separator = ", ");
/// "N05 × 3, N08 × 1".
[[nodiscard]] Cell counts_cell(Cell::Counts counts);
/// Null.
[[nodiscard]] Cell null_cell(std::string shown = {});

struct Column {
  Column(std::string name) : title(std::move(name)), key(key_of(title)) {}
  Column(const char* name) : Column(std::string(name)) {}
  Column(std::string name, std::string member) : title(std::move(name)), key(std::move(member)) {}

  std::string title;
  std::string key;  ///< in JSON and CSV: lower case with `_`, the unit at its end: `live_bytes`

 private:
  static std::string key_of(std::string title);
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// "table": aligned, numbers to the right; "json": an array with an object a row, of values by
  /// the columns' keys; "csv": the same values.
  [[nodiscard]] std::string print(const std::string& format) const;
  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<std::vector<Cell>>& rows() const { return rows_; }

 private:
  [[nodiscard]] std::string aligned() const;
  [[nodiscard]] std::string csv() const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// What a command answers: named tables, values and lists of answers, which are one JSON document.
struct Answer {
  using Member = std::variant<Table, Cell, std::vector<Answer>>;
  std::vector<std::pair<std::string, Member>> members;

  void add(std::string key, Member member) {
    members.emplace_back(std::move(key), std::move(member));
  }
  /// "json": one object; "table" and "csv": the tables, with an empty line between them.
  [[nodiscard]] std::string print(const std::string& format) const;
};

[[nodiscard]] std::string to_json(const Table& table);
[[nodiscard]] std::string to_json(const Answer& answer);
/// An array of texts, one a line.
[[nodiscard]] std::string to_json(const std::vector<std::string>& texts);
[[nodiscard]] std::string to_json(const std::vector<std::int64_t>& numbers);

}  // namespace pw
