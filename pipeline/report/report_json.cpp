#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pipeline/report/report_diff.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReportFormat = "piecewise.report/1";

struct ItemJson {
  Json operator()(const ReportText& text) const {
    return {{"lines", text.lines}, {"preformatted", text.preformatted}};
  }
  Json operator()(const ReportTable& table) const {
    return {{"caption", table.caption}, {"columns", table.columns}, {"rows", table.rows}};
  }
};

ReportItem item_of(const Json& json) {
  if (json.contains("lines"))
    return ReportText{json.at("lines").get<std::vector<std::string>>(),
                      json.at("preformatted").get<bool>()};
  return ReportTable{json.at("columns").get<std::vector<std::string>>(),
                     json.at("rows").get<std::vector<std::vector<std::string>>>(),
                     json.at("caption").get<std::string>()};
}

Report report_of(const Json& json) {
  Report out;
  out.title = json.at("title").get<std::string>();
  out.verdict = json.at("verdict").get<std::string>();
  out.good = json.at("good").get<bool>();
  for (const Json& section : json.at("sections")) {
    ReportSection& made = out.sections.emplace_back();
    made.title = section.at("title").get<std::string>();
    for (const Json& item : section.at("items")) made.items.push_back(item_of(item));
  }
  return out;
}

}  // namespace

std::string report_to_json(const Report& report) {
  Json sections = Json::array();
  for (const ReportSection& section : report.sections) {
    Json items = Json::array();
    for (const ReportItem& item : section.items) items.push_back(std::visit(ItemJson(), item));
    sections.push_back({{"title", section.title}, {"items", std::move(items)}});
  }
  const Json out{{"format", kReportFormat},
                 {"title", report.title},
                 {"verdict", report.verdict},
                 {"good", report.good},
                 {"sections", std::move(sections)}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Report> report_from_json(const std::string& text, const std::string& file) {
  const auto wrong = [&](const std::string& why) {
    return fail(error_in(file, "PW1280", why, "`pwr report -o report.json` writes one"));
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != kReportFormat)
    return wrong(fmt::format("this is not a report: its `format` is not \"{}\"", kReportFormat));
  try {
    return report_of(json);
  } catch (const Json::exception&) {
    return wrong("a member of the report is missing, or has the wrong type");
  }
}

}  // namespace pw
