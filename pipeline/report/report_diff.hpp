// Serializes reports and compares them.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "pipeline/report/table.hpp"
#include "viz/formats/report.hpp"

namespace pw {

/// Returns the report as `piecewise.report/1`; see docs/formats.md.
[[nodiscard]] std::string report_to_json(const Report& report);
/// Parses a report. Fails with PW1280 for any other text.
Result<Report> report_from_json(const std::string& text, const std::string& file);

/// A cell, row, or line that differs between two reports.
struct ReportChange {
  std::string section, table,
      row;             ///< a row is identified by its key cells; table and row are empty for prose
  std::string column;  ///< empty if the row or line exists in one report only
  std::string before, after;
};
/// Compares two reports. Rows of tables with the same caption correspond if their columns before
/// the first numeric one agree; duplicates correspond in order. Times and the command are compared
/// too.
[[nodiscard]] std::vector<ReportChange> compare_reports(const Report& before, const Report& after);
/// Compares two files. Fails with PW0001 or PW1280.
Result<std::vector<ReportChange>> compare_report_files(const std::string& before,
                                                       const std::string& after);
/// Prints "Rewriting, passes, norm: matches 0 → 4"; a line in one report only begins with − or +.
/// Unless `all`, a table of which more than 8 rows are new or gone is one line that counts them.
[[nodiscard]] std::string report_change_lines(const std::vector<ReportChange>& changes,
                                              bool all = true);
[[nodiscard]] Table report_change_table(const std::vector<ReportChange>& changes);

}  // namespace pw
