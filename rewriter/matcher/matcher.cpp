#include "rewriter/matcher/matcher.hpp"

#include <algorithm>
#include <map>

#include "rewriter/engine/legality.hpp"
#include "rewriter/matcher/search.hpp"

namespace pw {
namespace {

Rejection rejection_of(const Failure& failure) {
  return {failure.code, failure.message, failure.span, failure.at, failure.matched};
}

std::vector<std::uint64_t> position_of(const Graph& graph, const RuleLayout& layout,
                                       const Match& match) {
  std::vector<std::uint64_t> key{graph.label(own_nodes(graph, layout, match).front())};
  for (NodeId n : all_nodes(match)) key.push_back(graph.label(n));
  return key;
}

}  // namespace

std::vector<ValueId> bound_values(const Env& env, const std::string& name) {
  const auto bound = env.find(name);
  if (bound == env.end()) return {};
  if (const auto* value = std::get_if<ValueId>(&bound->second)) return {*value};
  if (const auto* list = std::get_if<std::vector<ValueId>>(&bound->second)) return *list;
  return {};
}

std::optional<Match> match_at(const Graph& graph, const RunRules& rules, RuleId rule, NodeId anchor,
                              const Env& params, Rejection* why) {
  RuleLayout layout = lay_out(rules, rule);
  Env base = starting_env(rules[rule], params);
  Search search(graph, layout, base, why != nullptr);
  std::optional<Match> first;
  search.run(anchor, [&](const Match& match) {
    first = match;
    return false;
  });
  if (!first && why != nullptr) *why = rejection_of(search.furthest());
  return first;
}

std::vector<Match> find_matches(const Graph& graph, const RunRules& rules, RuleId rule,
                                const Env& params, const std::function<bool(const Match&)>& fits) {
  RuleLayout layout = lay_out(rules, rule);
  Env base = starting_env(rules[rule], params);
  Search search(graph, layout, base, false);
  PatternNodeId anchor = anchor_of(rules[rule]);
  std::vector<std::pair<std::vector<std::uint64_t>, Match>> found;
  std::map<std::vector<NodeId>, std::size_t>
      seen;  // each set of nodes once, in its first assignment
  for (NodeId n = graph.first(); anchor.valid() && n.valid(); n = graph.next(n)) {
    if (graph.op(n) != rules[rule].nodes[anchor].op) continue;
    search.run(n, [&](const Match& match) {
      if (fits && !fits(match)) return true;
      std::vector<NodeId> key = all_nodes(match);
      std::sort(key.begin(), key.end());
      auto position = position_of(graph, layout, match);
      const auto [known, fresh] = seen.try_emplace(std::move(key), found.size());
      if (fresh)
        found.emplace_back(std::move(position), match);
      else if (position < found[known->second].first)
        found[known->second] = {std::move(position), match};
      return true;
    });
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Match> out;
  for (auto& [key, match] : found) out.push_back(std::move(match));
  return out;
}

bool frontier_fits(const Graph& graph, const RunRules& rules, RuleId frontier, const Env& params) {
  RuleLayout layout = lay_out(rules, frontier);
  Env base = starting_env(rules[frontier], params);
  PatternNodeId anchor = anchor_of(rules[frontier]);
  Search search(graph, layout, base, false);
  search.look_for_frontiers();
  bool found = false;
  for (NodeId n = graph.first(); anchor.valid() && n.valid() && !found; n = graph.next(n)) {
    if (graph.op(n) != rules[frontier].nodes[anchor].op) continue;
    search.run(n, [&](const Match&) {
      found = true;
      return false;
    });
  }
  return found;
}

std::vector<RuleId> opened_rules(const Graph& graph, RunRules& rules,
                                 const std::vector<RuleId>& ids, const Env& params) {
  std::vector<RuleId> out;
  for (RuleId id : ids) {
    if (!rules[id].frontier) {
      out.push_back(id);
    } else if (frontier_fits(graph, rules, id, params)) {
      const std::vector<RuleId> deeper = rules.open(id, graph.context_ptr());
      for (RuleId rule : opened_rules(graph, rules, deeper, params)) out.push_back(rule);
    }
  }
  return out;
}

}  // namespace pw
