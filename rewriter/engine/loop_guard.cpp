// A suspicion opens a window of at most kWindow rewrites. In the window the graph's structural hash
// is computed after each rewrite; a repeated hash closes a cycle, and the rules since its first
// occurrence are the answer. A window without a repetition raises the threshold fourfold, so that
// the total number of hashes is logarithmic in the largest generation.
#include "rewriter/engine/loop_guard.hpp"

#include <algorithm>

#include "graph/text/text.hpp"

namespace pw {

std::vector<RuleId> LoopGuard::watch(const Graph& graph, RuleId rule) {
  if (!watching_) {
    watching_ = true;
    seen_.clear();
    window_.clear();
    seen_.emplace(structural_hash(graph), 0);
    return {};
  }
  window_.push_back(rule);
  auto [it, fresh] = seen_.emplace(structural_hash(graph), window_.size());
  if (!fresh) return {window_.begin() + static_cast<std::ptrdiff_t>(it->second), window_.end()};
  if (window_.size() < kWindow) return {};
  watching_ = false;
  suspicion_ *= 4;
  return {};
}

std::string describe_cycle(const RunRules& rules, const std::vector<RuleId>& cycle) {
  auto by_rank = [&](RuleId a, RuleId b) { return rules[a].rank < rules[b].rank; };
  auto start = std::min_element(cycle.begin(), cycle.end(), by_rank);
  std::string out;
  for (std::size_t i = 0; i <= cycle.size(); ++i) {
    auto at = (static_cast<std::size_t>(start - cycle.begin()) + i) % cycle.size();
    out += (i == 0 ? "`" : " → `") + rules[cycle[at]].name + "`";
  }
  return out;
}

}  // namespace pw
