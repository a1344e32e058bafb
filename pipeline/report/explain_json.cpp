#include <nlohmann/json.hpp>

#include "pipeline/explain.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

/// `rule` is null for a built-in pass, and `builtin` for a rule.
Json explained_json(const RewriteStep& step) {
  const Json name = step.name, none;
  return {{"rule", step.rule.valid() ? name : none},
          {"builtin", step.rule.valid() ? none : name},
          {"pass", step.pass},
          {"step", step.step}};
}

Json explained_json(const BrokenPromise& broken) {
  return {{"strategy", broken.strategy},
          {"ensures", broken.promise},
          {"values", broken.values},
          {"nodes", broken.nodes}};
}

Json taker_json(const NearMiss& miss) {
  if (!miss.taken_by) return {};
  Json out = explained_json(*miss.taken_by);
  out["node"] = miss.at ? Json(miss.at->name) : Json();
  return out;
}

Json explained_json(const NearMissGroup& group) {
  const NearMiss& miss = group.first;
  return {{"code", miss.why.code},
          {"rule", miss.rule_name},
          {"at", miss.at ? Json(miss.at->name) : Json()},
          {"message", miss.why.message},
          {"matched", miss.why.matched},
          {"complete", miss.complete},
          {"nodes", miss.node_names},
          {"since", miss.since.empty() ? Json() : Json(miss.since)},
          {"taken_by", taker_json(miss)},
          {"missed_by", miss.missed_by.empty() ? Json() : Json(miss.missed_by)},
          {"undone_by", miss.undone_by ? explained_json(*miss.undone_by) : Json()},
          {"notes", miss.notes},
          {"place", miss.place},
          {"count", group.count},
          {"others", group.others},
          {"other_steps", group.other_steps},
          {"matched_alike", group.matched_alike},
          {"help", miss.help}};
}

Json explained_json(const AppliedGroup& group) {
  Json out = explained_json(group.first);
  out["nodes"] = group.nodes;
  out["count"] = group.count;
  return out;
}

template <class Item>
Json explained_list(const std::vector<Item>& items) {
  Json out = Json::array();
  for (const Item& item : items) out.push_back(explained_json(item));
  return out;
}

}  // namespace

std::string explanation_to_json(const Explanation& found, const std::string& rule) {
  Json range;
  if (found.range) range = {{"min", found.range->min}, {"max", found.range->max}};
  const Json out{{"rule", rule},
                 {"matches", found.matches},
                 {"range", range},
                 {"otherwise", found.otherwise},
                 {"applied", explained_list(found.applied)},
                 {"near_misses", explained_list(found.groups)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pw
