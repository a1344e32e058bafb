// A report of a run: sections of prose and tables. The page of render_html shows them as
// tabs; report_text is the same as plain text.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace pw {

struct ReportText {
  std::vector<std::string> lines;
  bool preformatted = false;
};
struct ReportTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string caption;
};
using ReportItem = std::variant<ReportText, ReportTable>;

struct ReportSection {
  std::string title;
  std::vector<ReportItem> items;
};
struct Report {
  std::string title;
  std::string verdict;  ///< one line on top: "all outputs agree"
  bool good = true;
  std::vector<ReportSection> sections;
};

/// The items of a section, without its title and without a style.
std::string section_html(const ReportSection& section);
std::string report_text(const Report& report);
/// The same as Markdown.
std::string report_markdown(const Report& report);

}  // namespace pw
