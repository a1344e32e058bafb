// Exports LoopGuard.
#include "rewriter/loop_guard.hpp"

#include <algorithm>

#include "graph/text.hpp"

namespace pw {

std::uint32_t LoopGuard::generation(NodeId n) const {
  return n.index < first_ || n.index - first_ >= generations_.size()
             ? 0
             : generations_[n.index - first_];
}

/// Ids rise, so that no node created later is before the first.
void LoopGuard::set_generation(std::span<const NodeId> created, std::uint32_t generation) {
  if (created.empty()) return;
  const auto [least, most] = std::minmax_element(created.begin(), created.end());
  if (generations_.empty()) first_ = least->index;
  if (generations_.size() <= most->index - first_) generations_.resize(most->index - first_ + 1);
  for (NodeId n : created) generations_[n.index - first_] = generation;
}

std::vector<RuleId> LoopGuard::after(const Graph& graph, RuleId rule,
                                     std::span<const NodeId> matched,
                                     std::span<const NodeId> created) {
  std::uint32_t oldest = 0;
  for (NodeId n : matched) oldest = std::max(oldest, generation(n));
  set_generation(created, oldest + 1);
  if (!watching_) {
    if (created.empty() || oldest < suspicion_) return {};
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
