// Exports section_html, report_html and report_text.
#include "viz/report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "viz/svg.hpp"

namespace pw {
namespace {

bool numeric(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.,-+e%× ") == std::string::npos &&
         text.find_first_of("0123456789") != std::string::npos;
}

std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #c9c9c9; --soft: #f4f4f2; --good: #00694c; --bad: #a33c00; --bar: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181a; --line: #4a4d50; --soft: #22262a; --good: #4cc9a0; --bad: #ff9a5c; --bar: #56b4e9; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; max-width: 72rem; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.6rem; margin: .5rem 0; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line); }
.verdict { font-weight: 600; padding: .5rem .8rem; border-left: 5px solid; } .good { color: var(--good); } .bad { color: var(--bad); }
nav a { margin-right: 1rem; } a { color: var(--bar); }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; } caption { text-align: left; padding: .2rem 0; color: var(--ink); opacity: .8; }
th, td { padding: .18rem .7rem; border-bottom: 1px solid var(--line); text-align: left; } th { background: var(--soft); } td.n, th.n { text-align: right; }
.scroll { overflow: auto; max-height: 34rem; border: 1px solid var(--line); } pre { background: var(--soft); padding: .7rem; overflow: auto; }
figure { margin: .8rem 0; } figure .canvas { overflow: auto; border: 1px solid var(--line); background: #fff; } figcaption { opacity: .8; } figure svg { display: block; width: 100%; max-width: 60rem; margin: 0 auto; }
.bars td { border: 0; padding: .05rem .5rem; } .bar { display: inline-block; height: .8rem; background: var(--bar); }
)";

struct Html {
  std::string out;

  void operator()(const ReportLink& link) {
    out += fmt::format("<p><a href=\"{}\">{}</a></p>\n", viz::xml_escaped(link.file),
                       viz::xml_escaped(link.text));
  }

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

  void operator()(const ReportPicture& picture) {
    out += "<figure><div class=\"canvas\">" + picture.svg + "</div><figcaption>" +
           viz::xml_escaped(picture.caption) + "</figcaption></figure>\n";
  }

  void operator()(const ReportBars& bars) {
    double most = 0;
    for (const auto& [label, value] : bars.bars) most = std::max(most, value);
    out += "<div class=\"scroll\"><table class=\"bars\"><caption>" +
           viz::xml_escaped(bars.caption) + "</caption>\n";
    for (const auto& [label, value] : bars.bars)
      out += fmt::format(
          "<tr><td>{}</td><td><span class=\"bar\" style=\"width:{:.1f}rem\"></span> {:.4g} "
          "{}</td></tr>\n",
          viz::xml_escaped(label), most > 0 ? 30 * value / most : 0, value,
          viz::xml_escaped(bars.unit));
    out += "</table></div>\n";
  }
};

struct Text {
  std::string out;

  void operator()(const ReportLink& link) { out += link.text + ": " + link.file + "\n"; }

  void operator()(const ReportText& text) {
    for (const std::string& line : text.lines) out += line + "\n";
  }

  void operator()(const ReportTable& table) {
    if (!table.caption.empty()) out += table.caption + "\n";
    std::vector<std::size_t> widths;
    for (const std::string& column : table.columns) widths.push_back(width(column));
    for (const auto& row : table.rows)
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
    auto line = [&](const std::vector<std::string>& row) {
      std::string text = " ";
      for (std::size_t c = 0; c < row.size(); ++c) {
        std::string pad(widths[c] - width(row[c]), ' ');
        text += " " + (numeric(row[c]) ? pad + row[c] : row[c] + pad) + " ";
      }
      text.erase(text.find_last_not_of(' ') + 1);
      out += text + "\n";
    };
    line(table.columns);
    for (const auto& row : table.rows) line(row);
  }

  void operator()(const ReportPicture& picture) {
    out += picture.caption + "\n" + picture.outline + "\n";
  }

  void operator()(const ReportBars& bars) {
    out += bars.caption + "\n";
    for (const auto& [label, value] : bars.bars)
      out += fmt::format("  {:<24} {:.4g} {}\n", label, value, bars.unit);
  }
};

}  // namespace

std::string section_html(const ReportSection& section) {
  Html html;
  for (const ReportItem& item : section.items) std::visit(html, item);
  return html.out;
}

std::string report_html(const Report& report) {
  Html html;
  html.out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{}</title><style>{}</style></head>\n<body>\n<h1>{}</"
      "h1>\n<p class=\"verdict {}\">{} {}</p>\n<nav>",
      viz::xml_escaped(report.title), kStyle, viz::xml_escaped(report.title),
      report.good ? "good" : "bad", report.good ? "✓" : "✗", viz::xml_escaped(report.verdict));
  for (std::size_t i = 0; i < report.sections.size(); ++i)
    html.out +=
        fmt::format("<a href=\"#s{}\">{}</a>", i, viz::xml_escaped(report.sections[i].title));
  html.out += "</nav>\n";
  for (std::size_t i = 0; i < report.sections.size(); ++i) {
    html.out +=
        fmt::format("<h2 id=\"s{}\">{}</h2>\n", i, viz::xml_escaped(report.sections[i].title));
    html.out += section_html(report.sections[i]);
  }
  return html.out + "</body></html>\n";
}

std::string report_text(const Report& report) {
  Text text;
  text.out =
      fmt::format("{}\n{} {}\n", report.title, report.good ? "ok:" : "FAILED:", report.verdict);
  for (const ReportSection& section : report.sections) {
    text.out += "\n" + section.title + "\n" + std::string(width(section.title), '-') + "\n";
    for (const ReportItem& item : section.items) std::visit(text, item);
  }
  return text.out;
}

}  // namespace pw
