#include "dsl/rule_index.hpp"

namespace pw {
namespace {

/// Adds an id. Ids rise, so comparing with the last one detects repetitions.
void put(std::vector<RuleId>& ids, RuleId id) {
  if (ids.empty() || ids.back() != id) ids.push_back(id);
}

}  // namespace

RuleIndex::RuleIndex(const RuleSet& set) {
  for (std::size_t i = 0; i < set.rules.size(); ++i) {
    const RuleId id(i);
    const Rule& rule = set.rules[id];
    const std::string family =
        rule.group.empty() ? rule.base_name : rule.group + "." + rule.base_name;
    for (const std::string& name :
         {rule.name.substr(0, rule.name.find('#')), rule.name, family, rule.group})
      put(names_[name], id);
    if (!rule.row.empty()) put(names_[rule.row], id);
    put(families_[family], id);
    put(groups_[rule.group], id);
  }
}

std::vector<RuleId> RuleIndex::resolve(std::string_view reference) const {
  const auto in = [](const Table& table, std::string_view name) {
    const auto found = table.find(name);
    return found == table.end() ? std::vector<RuleId>() : found->second;
  };
  if (reference.ends_with(".*")) return in(groups_, reference.substr(0, reference.size() - 2));
  if (reference.ends_with("[*]")) return in(families_, reference.substr(0, reference.size() - 3));
  return in(names_, reference);
}

}  // namespace pw
