// Reports as data: written, read again, and compared with each other.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "pipeline/report/table.hpp"
#include "viz/formats/report.hpp"

namespace pw {

/// `piecewise.report/1`, see docs/formats.md.
[[nodiscard]] std::string report_to_json(const Report& report);
/// PW1280 where the text is no such document.
Result<Report> report_from_json(const std::string& text, const std::string& file);

/// One cell, one row or one line that two reports do not share.
struct ReportChange {
  std::string section, table, row;  ///< a row by the cells that name it; of prose both are empty
  std::string column;               ///< empty: the row or line is in one of them only
  std::string before, after;
};
/// Rows of tables of one caption are the same where their first columns are, up to the first that
/// holds numbers; those that share these in order. Times and the command are compared as all else.
[[nodiscard]] std::vector<ReportChange> compare_reports(const Report& before, const Report& after);
/// Of two files. PW0001, PW1280.
Result<std::vector<ReportChange>> compare_report_files(const std::string& before,
                                                       const std::string& after);
/// "Rewriting, passes, norm: matches 0 → 4"; a line of one report alone begins with − or +.
[[nodiscard]] std::string report_change_lines(const std::vector<ReportChange>& changes);
[[nodiscard]] Table report_change_table(const std::vector<ReportChange>& changes);

}  // namespace pw
