#include <nlohmann/json.hpp>

#include "studies/study_lists.hpp"

namespace pw {

std::string text_of_list(const std::vector<std::string>& list) {
  return nlohmann::json(list).dump();
}

std::vector<std::string> list_of_text(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::string> out;
  if (!json.is_array()) return out;
  for (const auto& each : json)
    if (each.is_string()) out.push_back(each.get<std::string>());
  return out;
}

std::string study_row_text(const std::vector<std::string>& names,
                           const std::vector<std::string>& cells) {
  nlohmann::ordered_json out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (name == "graph" || name == "setting" || name == "state")
      out[name] = cells[i];
    else if (name == "written")
      out[name] = cells[i] == "1";
    else  // a number, the list of an order, or nothing
      out[name] =
          cells[i].empty() ? nullptr : nlohmann::ordered_json::parse(cells[i], nullptr, false);
  }
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace pw
