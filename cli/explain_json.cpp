// Exports explanation_to_json.
#include <nlohmann/json.hpp>

#include "cli/explaining.hpp"

namespace pw::cli {

std::string explanation_to_json(const Explanation& found, const std::string& rule,
                                const RuleSet& rules, const Graph& graph) {
  using Json = nlohmann::ordered_json;
  Json groups = Json::array();
  for (const NearMissGroup& group : found.groups) {
    const NearMiss& miss = group.first;
    Json nodes = Json::array();
    for (NodeId n : miss.nodes) nodes.push_back(graph.node_name(n));
    Json at = miss.why.at.valid() ? Json(graph.node_name(miss.why.at)) : Json();
    groups.push_back({{"code", miss.why.code},
                      {"rule", miss.rule.valid() ? rules.rules[miss.rule].name : ""},
                      {"at", at},
                      {"message", miss.why.message},
                      {"matched", miss.why.matched},
                      {"nodes", nodes},
                      {"place", miss.place},
                      {"count", group.count},
                      {"others", group.others},
                      {"matched_alike", group.matched_alike},
                      {"help", miss.help}});
  }
  const Json out{{"rule", rule}, {"matches", found.matches}, {"near_misses", groups}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pw::cli
