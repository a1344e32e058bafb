// A report of a run: sections of prose, tables and pictures, as one self-contained HTML file and as
// plain text.
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
struct ReportPicture {
  std::string svg;  ///< an <svg> element; ours, so not escaped
  std::string caption;
  std::string outline;  ///< what the plain-text twin shows in its place
};
/// Numbers over an axis as bars: sizes and their padding waste, memory over steps.
struct ReportBars {
  std::vector<std::pair<std::string, double>> bars;
  std::string unit, caption;
};
/// A file beside the report.
struct ReportLink {
  std::string file, text;
};
using ReportItem = std::variant<ReportText, ReportTable, ReportPicture, ReportBars, ReportLink>;

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
std::string report_html(const Report& report);
std::string report_text(const Report& report);

}  // namespace pw
