#include "viz/formats/report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "viz/formats/svg.hpp"

namespace pw {
namespace {

bool numeric(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,-+e%× ") == std::string::npos &&
         text.find_first_of("0123456789") != std::string::npos;
}

struct Html {
  std::string out;

  void operator()(const ReportText& text) {
    if (text.preformatted) {
      out += "<pre>";
      for (const std::string& line : text.lines) out += viz::xml_escaped(line) + "\n";
      out += "</pre>\n";
      return;
    }
    for (const std::string& line : text.lines) out += "<p>" + viz::xml_escaped(line) + "</p>\n";
  }

  void operator()(const ReportTable& table) {
    std::vector<bool> right(table.columns.size(), !table.rows.empty());
    for (const auto& row : table.rows)
      for (std::size_t c = 0; c < row.size(); ++c)
        right[c] = right[c] && (row[c].empty() || numeric(row[c]));
    out += table.rows.size() > 24 ? "<div class=\"scroll\"><table>" : "<div><table>";
    if (!table.caption.empty()) out += "<caption>" + viz::xml_escaped(table.caption) + "</caption>";
    out += "<thead><tr>";
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      out += fmt::format("<th{}>{}</th>", right[c] ? " class=\"n\"" : "",
                         viz::xml_escaped(table.columns[c]));
    out += "</tr></thead><tbody>\n";
    for (const auto& row : table.rows) {
      out += "<tr>";
      for (std::size_t c = 0; c < row.size(); ++c)
        out +=
            fmt::format("<td{}>{}</td>", right[c] ? " class=\"n\"" : "", viz::xml_escaped(row[c]));
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
  }
};

struct Text {
  std::string out;

  void operator()(const ReportText& text) {
    for (const std::string& line : text.lines) out += line + "\n";
  }

  void operator()(const ReportTable& table) {
    if (!table.caption.empty()) out += table.caption + "\n";
    std::vector<std::size_t> widths;
    for (const std::string& column : table.columns) widths.push_back(count_characters(column));
    for (const auto& row : table.rows)
      for (std::size_t c = 0; c < row.size(); ++c)
        widths[c] = std::max(widths[c], count_characters(row[c]));
    auto line = [&](const std::vector<std::string>& row) {
      std::string text = " ";
      for (std::size_t c = 0; c < row.size(); ++c) {
        std::string pad(widths[c] - count_characters(row[c]), ' ');
        text += " " + (numeric(row[c]) ? pad + row[c] : row[c] + pad) + " ";
      }
      text.erase(text.find_last_not_of(' ') + 1);
      out += text + "\n";
    };
    line(table.columns);
    for (const auto& row : table.rows) line(row);
  }
};

}  // namespace

std::string section_html(const ReportSection& section) {
  Html html;
  for (const ReportItem& item : section.items) std::visit(html, item);
  return html.out;
}

std::string report_text(const Report& report) {
  Text text;
  text.out = fmt::format("{}\n{}{}\n", report.title,
                         !report.good ? "FAILED: "
                         : report.ran ? "ok: "
                                      : "",
                         report.verdict);
  if (!report.failure.empty()) text.out += report.failure;
  if (!report.next.empty()) text.out += "next: " + report.next + "\n";
  for (const ReportSection& section : report.sections) {
    text.out +=
        "\n" + section.title + "\n" + std::string(count_characters(section.title), '-') + "\n";
    for (const ReportItem& item : section.items) std::visit(text, item);
  }
  return text.out;
}

}  // namespace pw
