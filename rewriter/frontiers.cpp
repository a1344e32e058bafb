// Exports open_for.
#include "rewriter/frontiers.hpp"

#include <algorithm>

#include "dsl/frontier.hpp"
#include "dsl/strategies.hpp"
#include "rewriter/matcher.hpp"

namespace pw {
namespace {

/// Replaces frontiers by what they opened.
void put_opened(const RuleSet& rules, std::vector<RuleId>& ids) {
  for (std::size_t i = 0; i < ids.size();) {
    if (!rules.rules[ids[i]].frontier) {
      ++i;
      continue;
    }
    const auto opened = rules.opened.find(ids[i]);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(i));
    if (opened != rules.opened.end())
      ids.insert(ids.begin() + static_cast<std::ptrdiff_t>(i), opened->second.begin(),
                 opened->second.end());
  }
}

void put_opened(const RuleSet& rules, Strategy& strategy) {
  put_opened(rules, strategy.rules);
  for (Strategy& part : strategy.parts) put_opened(rules, part);
}

}  // namespace

std::optional<OpenedRules> open_for(const Graph& graph, const RuleSet& rules,
                                    const Strategy& strategy, const Env& params) {
  std::vector<RuleId> ids = rules_of(strategy);
  std::erase_if(ids, [&](RuleId id) { return !rules.rules[id].frontier; });
  if (ids.empty()) return {};
  OpenedRules out{{}, strategy};
  while (!ids.empty()) {
    const RuleId id = ids.back();
    ids.pop_back();
    if (!frontier_fits(graph, out.rules ? *out.rules : rules, id, params)) continue;
    if (!out.rules) out.rules = rules;
    for (RuleId deeper : open_frontier(*out.rules, id)) {
      if (out.rules->rules[deeper].frontier) ids.push_back(deeper);
    }
  }
  put_opened(out.rules ? *out.rules : rules, out.strategy);
  return out;
}

}  // namespace pw
