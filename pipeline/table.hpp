// Rows with named columns: what commands print and reports hold.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pw {

class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// "table": aligned, numbers to the right; "json": an object a row; "csv".
  [[nodiscard]] std::string print(const std::string& format) const;
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pw
