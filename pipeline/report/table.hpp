// Rows with named columns, for commands, reports, and JSON.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pw {

/// A cell: the displayed text, and the value in JSON and CSV.
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

/// Returns seconds, displayed as "3.4 ms"; the column's key ends in `_s`.
[[nodiscard]] Cell seconds_cell(double seconds);
/// Returns a bool, displayed as "yes" or as `otherwise`.
[[nodiscard]] Cell yes_cell(bool holds, std::string otherwise = {});
/// Returns a number with a rounded display.
[[nodiscard]] Cell real_cell(double number, std::string shown);
/// Returns a list, displayed with `separator` between its members.
[[nodiscard]] Cell list_cell(std::vector<std::string> members, std::string_view separator = ", ");
[[nodiscard]] Cell list_cell(std::vector<std::int64_t> numbers, std::string_view separator = ", ");
/// Returns counts, displayed as "N05 × 3, N08 × 1".
[[nodiscard]] Cell counts_cell(Cell::Counts counts);
/// Returns null.
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
  /// Prints as "table" (aligned, numbers to the right), "json" (an array of objects by column key),
  /// or "csv" (the same values).
  [[nodiscard]] std::string print(const std::string& format) const;
  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<std::vector<Cell>>& rows() const { return rows_; }

 private:
  [[nodiscard]] std::string aligned() const;
  [[nodiscard]] std::string csv() const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// The answer of a command: named tables, values, and nested answers, which form one JSON document.
struct Answer {
  using Member = std::variant<Table, Cell, std::vector<Answer>>;
  std::vector<std::pair<std::string, Member>> members;

  void add(std::string key, Member member) {
    members.emplace_back(std::move(key), std::move(member));
  }
  /// Prints as "json" (one object), or as "table" or "csv" (the tables, separated by empty lines).
  [[nodiscard]] std::string print(const std::string& format) const;
};

[[nodiscard]] std::string to_json(const Table& table);
[[nodiscard]] std::string to_json(const Answer& answer);
/// Returns a JSON array of texts, one on each line.
[[nodiscard]] std::string to_json(const std::vector<std::string>& texts);
[[nodiscard]] std::string to_json(const std::vector<std::int64_t>& numbers);

}  // namespace pw
