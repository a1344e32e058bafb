#include "viz/formats/markdown.hpp"
#include "viz/formats/report.hpp"

namespace pw {
namespace {

using viz::markdown_text;

struct Markdown {
  std::string out;

  void operator()(const ReportText& text) {
    if (!text.preformatted) {
      for (const std::string& line : text.lines) out += markdown_text(line) + "\n\n";
      return;
    }
    // An indented block contains no markup and ends at a line without indentation.
    for (const std::string& lines : text.lines) {
      out += "    ";
      for (const char c : lines) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
      out += '\n';
    }
    out += '\n';
  }

  void operator()(const ReportTable& table) {
    if (!table.caption.empty()) out += markdown_text(table.caption) + ":\n\n";
    row(table.columns);
    out += '|';
    for (std::size_t c = 0; c < table.columns.size(); ++c) out += "---|";
    out += '\n';
    for (const std::vector<std::string>& cells : table.rows) row(cells);
    out += '\n';
  }

 private:
  void row(const std::vector<std::string>& cells) {
    out += '|';
    for (const std::string& cell : cells) out += ' ' + markdown_text(cell) + " |";
    out += '\n';
  }
};

}  // namespace

std::string report_markdown(const Report& report) {
  Markdown markdown;
  const std::string_view mark = !report.good ? "**FAILED:** " : report.ran ? "**ok:** " : "";
  markdown.out = "# " + markdown_text(report.title) + "\n\n" + std::string(mark) +
                 markdown_text(report.verdict) + "\n";
  if (!report.failure.empty() || !report.next.empty())
    std::visit(markdown, ReportItem(ReportText{{report.failure + report.next}, true}));
  for (const ReportSection& section : report.sections) {
    markdown.out += "\n## " + markdown_text(section.title) + "\n\n";
    for (const ReportItem& item : section.items) std::visit(markdown, item);
  }
  return markdown.out;
}

}  // namespace pw
