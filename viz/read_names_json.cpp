#include <cmath>

#include <nlohmann/json.hpp>

#include "viz/named_journal.hpp"

namespace pw {
namespace {

using Parsed = nlohmann::json;

tl::unexpected<Diagnostics> refuse(const std::string& place, std::string message,
                                   std::string help = "") {
  return fail(error_in(place, "PW0905", std::move(message), std::move(help)));
}

std::string text_of(const Parsed& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> names(const Parsed& event, const char* key) {
  std::vector<std::string> out;
  const auto found = event.find(key);
  if (found == event.end() || !found->is_array()) return out;
  for (const Parsed& node : *found)
    if (node.is_object()) out.push_back(text_of(node, "name"));
  return out;
}

}  // namespace

Result<std::vector<NamedRewrite>> named_journal_from_json(std::string_view text,
                                                          const std::string& file) {
  std::vector<NamedRewrite> out;
  std::uint32_t pass = 0;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Parsed event = Parsed::parse(line, nullptr, false);
    const std::string kind = event.is_object() ? text_of(event, "event") : std::string();
    if (kind == "pass_begin") {
      ++pass;
    } else if (kind == "match" || kind == "builtin") {
      NamedRewrite rewrite{text_of(event, "rule"),  pass,
                           names(event, "matched"), names(event, "created"),
                           names(event, "erased"),  {}};
      const auto bindings = event.find("bindings");
      if (bindings != event.end() && bindings->is_object())
        for (const auto& [name, value] : bindings->items())
          if (value.is_object()) rewrite.bindings.emplace_back(name, text_of(value, "name"));
      out.push_back(std::move(rewrite));
    } else if (kind != "pass_end") {
      return refuse(file + ":" + std::to_string(number), "this line is not a journal event",
                    "`pwr opt --trace DIR` writes DIR/journal.jsonl");
    }
  }
  return out;
}

Result<Overlay> overlay_from_json(std::string_view text, const std::string& file) {
  constexpr const char* kHelp = "an overlay is {\"NAME\": NUMBER, …}: names of nodes or values";
  const Parsed json = Parsed::parse(text, nullptr, false);
  if (!json.is_object()) return refuse(file, "this is not a JSON object", kHelp);
  Overlay out;
  for (const auto& [name, number] : json.items()) {
    if (!number.is_number() || !std::isfinite(number.get<double>()))
      return refuse(file + " at /" + name, "this is not a finite number", kHelp);
    out.numbers[name] = number.get<double>();
  }
  return out;
}

}  // namespace pw
