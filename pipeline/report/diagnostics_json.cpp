#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/characters.hpp"
#include "base/diagnostic_codes.hpp"
#include "base/printable.hpp"
#include "base/version.hpp"
#include "pipeline/explain.hpp"
#include "pipeline/report/diagnostics.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

std::string printed_document(const Json& json) {
  return printable_json(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json number_or_null(std::uint32_t number) { return number == 0 ? Json() : Json(number); }

Json place_json(const FilePlace& place) {
  return {{"file", text_or_null(place.file)},
          {"line", number_or_null(place.line)},
          {"column", number_or_null(place.column)},
          {"end_line", number_or_null(place.end_line)},
          {"end_column", number_or_null(place.end_column)}};
}

Json diagnostic_json(const PlacedDiagnostic& d) {
  Json out{{"severity", name(d.severity)}, {"code", text_or_null(d.code)}, {"message", d.message}};
  out.update(place_json(d.place));
  out["inside"] = text_or_null(d.inside);
  out["label"] = text_or_null(d.label);
  out["help"] = text_or_null(d.help);
  out["notes"] = d.notes;
  out["related"] = Json::array();
  for (const auto& [place, message] : d.related) {
    Json related{{"message", message}};
    related.update(place_json(place));
    out["related"].push_back(std::move(related));
  }
  return out;
}

// ---- SARIF

/// Returns the URI reference of a path.
std::string uri_of(const std::string& path) {
  constexpr std::string_view kPlain = "-._~/";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = is_letter_or_digit(c) || kPlain.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

Json location_of(const FilePlace& place) {
  Json physical{{"artifactLocation", {{"uri", uri_of(place.file)}}}};
  if (place.line > 0)
    physical["region"] = {{"startLine", place.line},
                          {"startColumn", place.character},
                          {"endLine", place.end_line},
                          {"endColumn", place.end_character}};
  return {{"physicalLocation", std::move(physical)}};
}

Json locations_of(const PlacedDiagnostic& d) {
  Json location = Json::object();
  if (!d.place.file.empty()) location = location_of(d.place);
  if (!d.inside.empty()) location["logicalLocations"] = {{{"fullyQualifiedName", d.inside}}};
  return location.empty() ? Json::array() : Json::array({location});
}

std::string whole_message(const PlacedDiagnostic& d) {
  std::string out = d.message;
  if (!d.label.empty()) out += "\n" + d.label;
  for (const std::string& note : d.notes) out += "\nnote: " + note;
  if (!d.help.empty()) out += "\nhelp: " + d.help;
  return out;
}

/// Returns the rules of a run: the codes that occur, in ascending order.
class SarifRules {
 public:
  explicit SarifRules(const std::vector<PlacedDiagnostic>& diagnostics) {
    for (const PlacedDiagnostic& d : diagnostics)
      if (!d.code.empty()) numbers_.emplace(d.code, 0);
    for (auto& [code, number] : numbers_) {
      number = rules_.size();
      Json rule{{"id", code}};
      if (const std::string_view meaning = code_meaning(code); !meaning.empty())
        rule["shortDescription"] = {{"text", meaning}};
      if (const std::string_view help = code_help(code); !help.empty())
        rule["help"] = {{"text", help}};
      rules_.push_back(std::move(rule));
    }
  }
  [[nodiscard]] const Json& rules() const { return rules_; }
  [[nodiscard]] std::size_t number(const std::string& code) const { return numbers_.at(code); }

 private:
  std::map<std::string, std::size_t> numbers_;
  Json rules_ = Json::array();
};

Json sarif_result(const PlacedDiagnostic& d, const SarifRules& rules) {
  Json out = Json::object();
  if (!d.code.empty()) {
    out["ruleId"] = d.code;
    out["ruleIndex"] = rules.number(d.code);
  }
  out["level"] = name(d.severity);
  out["message"] = {{"text", whole_message(d)}};
  out["locations"] = locations_of(d);
  Json related = Json::array();
  for (const auto& [place, message] : d.related) {
    Json location = location_of(place);
    location["message"] = {{"text", message}};
    related.push_back(std::move(location));
  }
  if (!related.empty()) out["relatedLocations"] = std::move(related);
  return out;
}

}  // namespace

std::string diagnostics_to_json(const DiagnosticRun& run) {
  Json out{{"format", "piecewise.diagnostics/1"},
           {"program", run.program},
           {"exit_code", run.exit_code},
           {"diagnostics", Json::array()}};
  for (const PlacedDiagnostic& d : run.diagnostics)
    out["diagnostics"].push_back(diagnostic_json(d));
  return printed_document(out);
}

std::string diagnostics_to_sarif(const DiagnosticRun& run) {
  const SarifRules rules(run.diagnostics);
  Json results = Json::array();
  for (const PlacedDiagnostic& d : run.diagnostics) results.push_back(sarif_result(d, rules));
  const Json driver{
      {"name", run.program}, {"version", std::string(version())}, {"rules", rules.rules()}};
  const Json one{
      {"tool", {{"driver", driver}}},
      {"columnKind", "unicodeCodePoints"},
      {"invocations", {{{"executionSuccessful", run.exit_code == 0}, {"exitCode", run.exit_code}}}},
      {"results", std::move(results)}};
  return printed_document({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                           {"version", "2.1.0"},
                           {"runs", Json::array({one})}});
}

}  // namespace pw
