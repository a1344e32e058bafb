#include "dsl/ruleset.hpp"

namespace pw {

PW_DEFAULT_SPECIAL_MEMBERS(PatternValue);
PW_DEFAULT_SPECIAL_MEMBERS(PatternNode);
PW_DEFAULT_SPECIAL_MEMBERS(Rule);
PW_DEFAULT_SPECIAL_MEMBERS(Strategy);
PW_DEFAULT_SPECIAL_MEMBERS(RuleSet);

namespace {

std::string base_of(const Rule& rule) {
  return rule.group.empty() ? rule.base_name : rule.group + "." + rule.base_name;
}

/// Returns `rule[row]` of its variant `rule[row]#1`.
std::string_view unnumbered(std::string_view name) { return name.substr(0, name.find('#')); }

template <class Predicate>
std::vector<RuleId> select(const RuleSet& set, Predicate keep) {
  std::vector<RuleId> result;
  for (std::size_t i = 0; i < set.rules.size(); ++i) {
    if (keep(set.rules[RuleId(i)])) result.emplace_back(i);
  }
  return result;
}

}  // namespace

PatternValueId Rule::value_named(std::string_view value) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!value.empty() && values[PatternValueId(i)].name == value) return PatternValueId(i);
  }
  return {};
}

std::vector<RuleId> RuleSet::resolve(std::string_view reference) const {
  if (reference.ends_with(".*")) {
    const auto group = reference.substr(0, reference.size() - 2);
    return select(*this, [&](const Rule& r) { return r.group == group; });
  }
  if (reference.ends_with("[*]")) {
    const auto family = reference.substr(0, reference.size() - 3);
    return select(*this, [&](const Rule& r) { return base_of(r) == family; });
  }
  return select(*this, [&](const Rule& r) {
    return unnumbered(r.name) == reference || r.name == reference || base_of(r) == reference ||
           r.group == reference || (!r.row.empty() && r.row == reference);
  });
}

const Strategy* RuleSet::strategy(std::string_view name) const {
  for (const auto* table : {&pipelines, &passes, &implicit}) {
    if (auto it = table->find(std::string(name)); it != table->end()) return &it->second;
  }
  return nullptr;
}

}  // namespace pw
