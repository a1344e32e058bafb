#include "bench/generic_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#ifdef PW_SIMDJSON
#include <simdjson.h>
#endif

namespace pw::bench {
namespace {

void add(Table& table, const std::string& name, const std::string& text, int runs,
         const std::function<std::size_t()>& read) {
  std::vector<double> times;
  std::size_t seen = 0;
  for (int run = 0; run < runs; ++run) times.push_back(seconds([&] { seen += read(); }));
  if (seen == 0) die(name + " read nothing");
  const double time = median(std::move(times));
  table.add({name, "", grouped(text.size()), milliseconds(time), "",
             fmt::format("{:.0f}", static_cast<double>(text.size()) / time / 1e6)});
}

#ifdef PW_SIMDJSON
/// Characters of all strings and keys, unescaped, and how many other values.
std::size_t visit(simdjson::ondemand::value value) {
  std::size_t seen = 0;
  switch (value.type()) {
    case simdjson::ondemand::json_type::object:
      for (auto field : value.get_object()) {
        seen += std::string_view(field.unescaped_key()).size();
        seen += visit(field.value());
      }
      break;
    case simdjson::ondemand::json_type::array:
      for (auto item : value.get_array()) seen += visit(item.value());
      break;
    case simdjson::ondemand::json_type::string:
      seen += std::string_view(value.get_string()).size();
      break;
    case simdjson::ondemand::json_type::number: seen += double(value.get_double()) != 0; break;
    case simdjson::ondemand::json_type::boolean: seen += bool(value.get_bool()); break;
    case simdjson::ondemand::json_type::null: seen += value.is_null(); break;
  }
  return seen;
}

std::size_t visit(simdjson::ondemand::parser& parser, const simdjson::padded_string& text) {
  auto document = parser.iterate(text);
  std::size_t seen = 0;
  for (auto field : document.get_object()) {
    seen += std::string_view(field.unescaped_key()).size();
    seen += visit(field.value());
  }
  return seen;
}
#endif

}  // namespace

void add_generic(Table& table, const std::string& text, int runs) {
  add(table, "graph.json by nlohmann-json, as a tree", text, std::min(runs, 3),
      [&] { return nlohmann::json::parse(text).size(); });
#ifdef PW_SIMDJSON
  const simdjson::padded_string padded(text);
  simdjson::ondemand::parser parser;
  add(table, "graph.json by simdjson, each value visited", text, runs,
      [&] { return visit(parser, padded); });
#endif
}

}  // namespace pw::bench
