#include "failures/strategy_parts.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dsl/build/strategy_options.hpp"
#include "rewriter/analysis/orders/outcome.hpp"
#include "rewriter/analysis/passes.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

bool has_rules(Kind kind) {
  return kind == Kind::greedy || kind == Kind::walk || kind == Kind::once;
}

void add_units(const RuleSet& rules, const Strategy& strategy, std::size_t& place,
               std::vector<StrategyUnit>& out) {
  const bool opens = strategy.kind == Kind::sequence ||
                     (strategy.kind == Kind::reference && strategy.builtin.empty());
  if (opens && !strategy.fuel) {
    for (const Strategy& part : strategy.parts) add_units(rules, part, place, out);
    return;
  }
  ++place;
  if (!has_rules(strategy.kind)) {
    out.push_back({strategy.builtin.empty() ? strategy.label : strategy.builtin, place,
                   unconditional(strategy)});
    return;
  }
  std::map<std::string, std::vector<RuleId>> by_name;  // rules written by one name stay together
  for (RuleId id : strategy.rules) by_name[written_name(rules.rules[id])].push_back(id);
  for (auto& [name, ids] : by_name) {
    Strategy one = unconditional(strategy);
    one.rules = std::move(ids);
    out.push_back({name, place, std::move(one)});
  }
}

}  // namespace

std::vector<StrategyUnit> units_of(const RuleSet& rules, const Strategy& strategy) {
  std::vector<StrategyUnit> out;
  std::size_t place = 0;
  add_units(rules, strategy, place, out);
  return out;
}

Strategy strategy_of(const std::vector<StrategyUnit>& units) {
  Strategy out;
  out.kind = Kind::sequence;
  out.label = "reduced";
  std::size_t place = 0;
  for (const StrategyUnit& unit : units) {
    if (unit.place == place && has_rules(unit.strategy.kind)) {
      std::vector<RuleId>& ids = out.parts.back().rules;
      ids.insert(ids.end(), unit.strategy.rules.begin(), unit.strategy.rules.end());
    } else {
      out.parts.push_back(unit.strategy);
    }
    place = unit.place;
  }
  if (out.parts.size() == 1) return Strategy(out.parts.front());
  return out;
}

std::string strategy_text(const RuleSet& rules, const std::vector<StrategyUnit>& units,
                          const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < units.size();) {
    const Strategy& strategy = units[i].strategy;
    if (!has_rules(strategy.kind)) {
      if (rules.strategy(units[i].name) == nullptr) return "";
      parts.push_back(units[i++].name);
      continue;
    }
    std::vector<std::string> names;
    const std::size_t place = units[i].place;
    for (; i < units.size() && units[i].place == place; ++i) names.push_back(units[i].name);
    parts.push_back(fmt::format("{} {{ {} }}{}", word(strategy.kind), fmt::join(names, ", "),
                                strategy.fuel ? fmt::format(" fuel {}", *strategy.fuel) : ""));
  }
  if (parts.size() == 1 && has_rules(units.front().strategy.kind))
    return fmt::format("pass {} = {}\n", name, parts.front());
  return fmt::format("pipeline {} {{\n  {}\n}}\n", name, fmt::join(parts, "\n  "));
}

}  // namespace pw
