// A report of a run: sections of prose and tables. render_html shows them as tabs; report_text
// prints them as plain text.
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
  bool ran = true;      ///< false: nothing was executed, so the verdict is neither good nor bad
  std::string failure;  ///< the first rewrite that fails, as lines; empty if none is known
  std::string next;     ///< a command to run next; empty if there is none
  std::vector<ReportSection> sections;
};

/// Returns the items of a section as HTML, without title and style.
std::string section_html(const ReportSection& section);
std::string report_text(const Report& report);
/// Returns the report as Markdown.
std::string report_markdown(const Report& report);

}  // namespace pw
