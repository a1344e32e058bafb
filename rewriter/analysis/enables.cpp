#include "rewriter/analysis/enables.hpp"

#include <algorithm>
#include <queue>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/attribute.hpp"
#include "rewriter/analysis/passes.hpp"

namespace pw {
namespace {

struct Ops {
  std::vector<RuleId> variants;
  std::set<std::string> matched, built;
};

std::map<std::string, Ops> ops_by_name(const RuleSet& set, const std::vector<RuleId>& rules) {
  std::map<std::string, Ops> out;
  for (RuleId id : rules) {
    const Rule& rule = set.rules[id];
    Ops& ops = out[written_name(rule)];
    ops.variants.push_back(id);
    for (const PatternNode& node : rule.nodes)
      if (node.negation < 0) ops.matched.insert(set.context->ops[node.op].name);
    for (const auto& [op, count] : effect_of(set, id).built) ops.built.insert(op);
  }
  return out;
}

/// Returns, by rule, which others can be reached in one step or more.
std::vector<std::vector<char>> reachable(const Enables& enables) {
  std::vector<std::vector<char>> out;
  for (std::size_t from = 0; from < enables.rules.size(); ++from) {
    std::vector<char> seen(enables.rules.size());
    std::vector<std::size_t> open{from};
    while (!open.empty()) {
      const std::size_t at = open.back();
      open.pop_back();
      for (const auto& edge : enables.rules[at].edges) {
        if (seen[edge.to] != 0) continue;
        seen[edge.to] = 1;
        open.push_back(edge.to);
      }
    }
    out.push_back(std::move(seen));
  }
  return out;
}

/// Computes the longest path to each rule from one that nothing enables; a cycle counts as one.
void set_steps(Enables& enables, const std::vector<std::vector<char>>& reach) {
  std::vector<std::size_t> order(enables.rules.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto before = [&](std::size_t i) {  // how many can enable it: fewer comes first
    return std::count_if(reach.begin(), reach.end(),
                         [&](const std::vector<char>& from) { return from[i] != 0; });
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return before(a) < before(b); });
  for (std::size_t i : order) {
    std::size_t step = 1;
    for (std::size_t j : order)
      if (reach[j][i] != 0 && reach[i][j] == 0) step = std::max(step, enables.rules[j].step + 1);
    enables.rules[i].step = step;
    enables.rules[i].in_cycle = reach[i][i] != 0;
  }
}

void sort_by_step(Enables& enables) {
  std::vector<std::size_t> order(enables.rules.size()), place(enables.rules.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return enables.rules[a].step < enables.rules[b].step;
  });
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<Enables::Entry> sorted;
  for (std::size_t i : order) sorted.push_back(std::move(enables.rules[i]));
  for (Enables::Entry& entry : sorted)
    for (auto& edge : entry.edges) edge.to = place[edge.to];
  enables.rules = std::move(sorted);
}

std::vector<std::size_t> way_back(const Enables& enables, const std::set<std::string>& within,
                                  std::size_t start) {
  std::map<std::size_t, std::size_t> from;
  std::queue<std::size_t> open;
  open.push(start);
  while (!open.empty()) {
    const std::size_t at = open.front();
    open.pop();
    for (const auto& edge : enables.rules[at].edges) {
      if (within.count(enables.rules[edge.to].name) == 0) continue;
      if (edge.to == start) {
        std::vector<std::size_t> out{at};
        while (out.back() != start) out.push_back(from.at(out.back()));
        std::reverse(out.begin(), out.end());
        return out;
      }
      if (from.emplace(edge.to, at).second) open.push(edge.to);
    }
  }
  return {};
}

}  // namespace

std::vector<RuleId> all_rules(const RuleSet& set) {
  std::vector<RuleId> out;
  for (std::size_t i = 0; i < set.rules.size(); ++i)
    if (!set.rules[RuleId(i)].frontier) out.push_back(RuleId(i));
  return out;
}

Enables find_enables(const RuleSet& set, const std::vector<RuleId>& rules) {
  const std::map<std::string, Ops> by_name = ops_by_name(set, rules);
  Enables out;
  for (const auto& [name, ops] : by_name) out.rules.push_back({name, 0, false, ops.variants, {}});
  std::size_t at = 0;
  for (const auto& [name, from] : by_name) {
    std::size_t to = 0;
    for (const auto& [other, there] : by_name) {
      std::vector<std::string> shared;
      std::set_intersection(from.built.begin(), from.built.end(), there.matched.begin(),
                            there.matched.end(), std::back_inserter(shared));
      if (!shared.empty()) out.rules[at].edges.push_back({to, std::move(shared)});
      ++to;
    }
    ++at;
  }
  set_steps(out, reachable(out));
  sort_by_step(out);
  return out;
}

std::vector<std::size_t> shortest_cycle(const Enables& enables,
                                        const std::set<std::string>& within) {
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < enables.rules.size(); ++i) {
    if (within.count(enables.rules[i].name) == 0) continue;
    std::vector<std::size_t> found = way_back(enables, within, i);
    if (!found.empty() && (best.empty() || found.size() < best.size())) best = std::move(found);
  }
  return best;
}

std::string enables_to_dot(const Enables& enables) {
  std::string out = "digraph rules {\n  rankdir = LR\n  node [shape = box]\n";
  for (const Enables::Entry& entry : enables.rules)
    out += fmt::format("  {}{}\n", quote(entry.name), entry.in_cycle ? " [color = red]" : "");
  for (const Enables::Entry& entry : enables.rules)
    for (const auto& edge : entry.edges)
      out += fmt::format("  {} -> {} [label = {}]\n", quote(entry.name),
                         quote(enables.rules[edge.to].name),
                         quote(fmt::format("{}", fmt::join(edge.ops, ", "))));
  return out + "}\n";
}

}  // namespace pw
