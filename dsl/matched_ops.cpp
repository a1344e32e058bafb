#include "dsl/matched_ops.hpp"

#include <algorithm>

namespace pw {
namespace {

bool collect(const RuleSet& rules, const Strategy& strategy, std::vector<MatchedOps>& out) {
  if (!strategy.builtin.empty() || !strategy.ensures.empty() ||
      strategy.kind == ast::Strategy::Kind::best || strategy.kind == ast::Strategy::Kind::saturate)
    return false;
  for (const RuleId id : strategy.rules) {
    const Rule& rule = rules.rules[id];
    if (rule.frontier) return false;
    MatchedOps& ops = out.emplace_back();
    for (const PatternNode& node : rule.nodes) {
      const std::string& name = rules.context->ops[node.op].name;
      ops.named.insert(name);
      if (node.negation < 0 && !node.members.valid()) ops.required.insert(name);
    }
  }
  return std::all_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return collect(rules, part, out); });
}

}  // namespace

std::optional<std::vector<MatchedOps>> matched_ops(const RuleSet& rules, const Strategy& strategy) {
  std::vector<MatchedOps> out;
  if (!collect(rules, strategy, out)) return std::nullopt;
  return out;
}

}  // namespace pw
