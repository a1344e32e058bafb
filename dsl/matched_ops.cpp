// Exports matched_ops.
#include "dsl/matched_ops.hpp"

#include <algorithm>

namespace pw {
namespace {

// Whether the nodes are one part, where those that share a value belong together.
bool hangs_together(const Rule& rule) {
  std::set<PatternValueId> reached;
  std::vector<const PatternNode*> rest;
  for (const PatternNode& node : rule.nodes) rest.push_back(&node);
  const auto add = [&](const PatternNode& node) {
    for (const auto* values : {&node.operands, &node.results})
      for (const PatternValueId v : *values)
        if (v.valid() && !rule.values[v].literal && !rule.values[v].literal_none) reached.insert(v);
  };
  const auto touches = [&](const PatternNode* node) {
    for (const auto* values : {&node->operands, &node->results})
      for (const PatternValueId v : *values)
        if (reached.contains(v)) return true;
    return false;
  };
  if (rest.empty()) return false;
  add(*rest.back());
  rest.pop_back();
  while (!rest.empty()) {
    const auto next = std::find_if(rest.begin(), rest.end(), touches);
    if (next == rest.end()) return false;
    add(**next);
    rest.erase(next);
  }
  return true;
}

bool collect(const RuleSet& rules, const Strategy& strategy, std::vector<MatchedOps>& out) {
  if (!strategy.builtin.empty() || !strategy.ensures.empty() ||
      strategy.kind == ast::Strategy::Kind::best || strategy.kind == ast::Strategy::Kind::saturate)
    return false;
  for (const RuleId id : strategy.rules) {
    const Rule& rule = rules.rules[id];
    if (rule.frontier || !hangs_together(rule)) return false;
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
