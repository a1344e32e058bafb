// Tables of a command without the rows that say that nothing happened; --all prints them.
#pragma once

#include <string_view>

#include "pipeline/report/table.hpp"

namespace pw::cli {

struct Folded {
  Table shown;
  std::size_t hidden = 0;
};

/// Leaves out the rows whose cell in this column has this text.
inline Folded folded(const Table& table, std::string_view column, std::string_view text) {
  Folded out{Table(table.columns())};
  std::size_t at = 0;
  while (at < table.columns().size() && table.columns()[at].title != column) ++at;
  for (const std::vector<Cell>& row : table.rows()) {
    if (at < row.size() && row[at].text == text)
      ++out.hidden;
    else
      out.shown.add(row);
  }
  return out;
}

}  // namespace pw::cli
