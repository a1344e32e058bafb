#include <fmt/format.h>

#include "base/counted.hpp"
#include "kernel_reports/kernel_quality.hpp"
#include "viz/formats/svg.hpp"

namespace pw {
namespace {

using viz::xml_escaped;

constexpr const char* kStyle = R"(
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1500px; padding: 16px 24px 48px;
  color: #1b1f24; background: #fff; }
h1 { font-size: 22px; margin: 8px 0; } h2 { font-size: 17px; margin: 28px 0 8px; }
p { margin: 4px 0 10px; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: 6px 0 14px; font-size: 13px; }
th, td { border-bottom: 1px solid #d1d9e0; padding: 4px 10px 4px 0; text-align: left; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } tr.short { background: #fff5eb; }
)";

void add_table(std::string& out, const Table& table, std::size_t marked) {
  out += "<div class=\"scroll\"><table>\n<tr>";
  for (const Column& c : table.columns()) out += "<th>" + xml_escaped(c.title) + "</th>";
  out += "</tr>\n";
  for (const std::vector<Cell>& row : table.rows()) {
    const bool is_short = marked < row.size() && row[marked].text != "0";
    out += is_short ? "<tr class=\"short\">" : "<tr>";
    for (const Cell& cell : row) {
      const bool number = std::holds_alternative<std::int64_t>(cell.value) ||
                          std::holds_alternative<double>(cell.value);
      out += fmt::format("<td{}>{}</td>", number ? " class=\"n\"" : "", xml_escaped(cell.text));
    }
    out += "</tr>\n";
  }
  out += "</table></div>\n";
}

const Table* table_of(const Answer& answer, std::string_view key) {
  for (const auto& [name, member] : answer.members)
    if (name == key) return std::get_if<Table>(&member);
  return nullptr;
}

}  // namespace

std::string quality_page(const QualityReport& report, const std::string& title) {
  const Answer answer = quality_answer(report);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>"
      "<style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n",
      xml_escaped(title), kStyle);
  out += fmt::format(
      "<p>{}, {} with a shortcoming. Compiled by NVRTC {}; instructions {}. Instructions and "
      "accesses by width are those of the machine code, each once, however often it runs; bytes "
      "are those of a launch.</p>\n",
      counted(report.rows.size(), "row"), report.short_rows(),
      xml_escaped(report.nvrtc_version.empty() ? "(absent)" : report.nvrtc_version),
      report.disassembler.starts_with("absent") ? "are not known" : "as nvdisasm reads them");
  if (const Table* step = table_of(answer, "step"); step != nullptr) {
    out += "<h2>A step</h2>\n";
    add_table(out, *step, step->columns().size());
  }
  const Table& reasons = *table_of(answer, "shortcomings");
  if (!reasons.empty()) {
    out += "<h2>Shortcomings</h2>\n";
    add_table(out, reasons, reasons.columns().size());
  }
  if (const Table* tensor = table_of(answer, "tensor"); tensor != nullptr) {
    out +=
        "<h2>On tensor cores</h2>\n<p>Products and attention without a library. The bound is "
        "the larger of the times for bytes and for multiplications; the model's times are not "
        "measured.</p>\n";
    add_table(out, *tensor, tensor->columns().size());
  }
  const Table& kernels = *table_of(answer, "kernels");
  out += "<h2>Kernels</h2>\n";
  add_table(out, kernels, kernels.columns().size() - 1);
  return out + "</body></html>\n";
}

}  // namespace pw
