#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "pipeline/report/table.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

struct JsonValue {
  Json operator()(std::monostate) const { return {}; }
  Json operator()(const Cell::Counts& counts) const {
    Json out = Json::object();
    for (const auto& [name, count] : counts) out[name] = count;
    return out;
  }
  template <class Value>
  Json operator()(const Value& value) const {
    return value;
  }
};

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json object_of(const Table& table, const std::vector<Cell>& row) {
  Json out = Json::object();
  for (std::size_t c = 0; c < row.size(); ++c)
    out[table.columns()[c].key] = std::visit(JsonValue(), row[c].value);
  return out;
}

/// Prints an array with a member on each line, indented by two more than `indent`.
std::string array_of(const std::vector<std::string>& lines, const std::string& indent) {
  std::string out = "[";
  for (const std::string& line : lines)
    out += (&line == lines.data() ? "\n" : ",\n") + indent + "  " + line;
  return out + (lines.empty() ? "]" : "\n" + indent + "]");
}

std::string json_text(const Table& table, const std::string& indent) {
  std::vector<std::string> lines;
  for (const std::vector<Cell>& row : table.rows()) lines.push_back(line_of(object_of(table, row)));
  return array_of(lines, indent);
}

std::string json_text(const Answer& answer, const std::string& indent);

std::string json_text(const Cell& cell, const std::string&) {
  return line_of(std::visit(JsonValue(), cell.value));
}

std::string json_text(const std::vector<Answer>& answers, const std::string& indent) {
  std::vector<std::string> texts;
  for (const Answer& answer : answers) texts.push_back(json_text(answer, indent + "  "));
  return array_of(texts, indent);
}

std::string json_text(const Answer& answer, const std::string& indent) {
  std::string out = "{";
  for (const auto& [key, member] : answer.members) {
    out += (out.size() == 1 ? "\n" : ",\n") + indent + "  " + line_of(Json(key)) + ": ";
    out += std::visit([&](const auto& held) { return json_text(held, indent + "  "); }, member);
  }
  return out + (answer.members.empty() ? "}" : "\n" + indent + "}");
}

}  // namespace

std::string to_json(const Table& table) { return printable_json(json_text(table, "") + "\n"); }
std::string to_json(const Answer& answer) { return printable_json(json_text(answer, "") + "\n"); }
std::string to_json(const std::vector<std::string>& texts) {
  std::vector<std::string> lines;
  for (const std::string& text : texts) lines.push_back(line_of(Json(text)));
  return printable_json(array_of(lines, "") + "\n");
}

std::string to_json(const std::vector<std::int64_t>& numbers) {
  return line_of(Json(numbers)) + "\n";
}

}  // namespace pw
