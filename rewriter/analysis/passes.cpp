#include "rewriter/analysis/passes.hpp"

#include <algorithm>
#include <functional>
#include <set>

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

struct PassPlace {
  const Strategy* strategy;
  const std::string& owner;
  bool top, fuel;
};

/// Visits strategies. The fuel of a `repeat` counts its rounds, and does not bound a round.
void visit(const PassPlace& place, const std::function<void(const PassPlace&)>& found) {
  PassPlace here = place;
  here.fuel = place.fuel || place.strategy->fuel.has_value();
  found(here);
  const bool inner = place.strategy->kind == Kind::repeat ? place.fuel : here.fuel;
  for (const Strategy& part : place.strategy->parts)
    visit({&part, place.owner, false, inner}, found);
}

void visit_all(const RuleSet& rules, const std::function<void(const PassPlace&)>& found) {
  for (const auto* strategies : {&rules.passes, &rules.pipelines})
    for (const auto& [name, strategy] : *strategies) visit({&strategy, name, true, false}, found);
}

void collect(const Strategy& strategy, std::set<RuleId>& out) {
  if (strategy.kind == Kind::saturate) return;
  out.insert(strategy.rules.begin(), strategy.rules.end());
  for (const Strategy& part : strategy.parts) collect(part, out);
}

}  // namespace

std::vector<RulePass> rule_passes(const RuleSet& rules) {
  std::vector<RulePass> out;
  std::set<std::vector<RuleId>> seen;
  visit_all(rules, [&](const PassPlace& place) {
    const Kind kind = place.strategy->kind;
    if (kind != Kind::greedy && kind != Kind::walk && kind != Kind::once) return;
    if (seen.insert(place.strategy->rules).second)
      out.push_back({place.strategy, place.owner, place.top});
  });
  return out;
}

std::vector<Repetition> repetitions(const RuleSet& rules) {
  std::vector<Repetition> out;
  std::set<std::vector<RuleId>> seen;
  visit_all(rules, [&](const PassPlace& place) {
    const Kind kind = place.strategy->kind;
    if (kind != Kind::greedy && kind != Kind::walk && kind != Kind::repeat) return;
    if (place.fuel) return;
    std::set<RuleId> all;
    collect(*place.strategy, all);
    std::vector<RuleId> sorted(all.begin(), all.end());
    if (seen.insert(sorted).second) out.push_back({place.strategy, place.owner, std::move(sorted)});
  });
  return out;
}

std::string written_name(const Rule& rule) {
  return rule.group.empty() ? rule.base_name : rule.group + "." + rule.base_name;
}

}  // namespace pw
