// Detects rules that rewrite each other's results for ever. Generations make this cheap: a new
// node's generation is one more than the highest generation of the nodes it replaces. Only a
// suspiciously high generation causes whole graphs to be hashed, for a limited number of rewrites.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "base/trivial_array.hpp"
#include "rewriter/strategies/journal.hpp"

namespace pw {

/// Detector of rewrite cycles. Invariant: `generations_` holds a generation for every node created
/// by the run; older nodes have generation 0. Memory: four bytes for each created node. A rewrite
/// costs constant time outside of a window, and the hash of the graph inside one.
class LoopGuard {
 public:
  /// Records a rewrite; called after each one. Returns the rules of the cycle once a graph occurs a
  /// second time; empty otherwise.
  std::vector<RuleId> after(const Graph& graph, RuleId rule, std::span<const NodeId> matched,
                            std::span<const NodeId> created) {
    std::uint32_t oldest = 0;
    for (NodeId n : matched) oldest = std::max(oldest, generation(n));
    for (NodeId n : created) set_generation(n, oldest + 1);
    if (!watching_ && (created.empty() || oldest < suspicion_)) return {};
    return watch(graph, rule);
  }

 private:
  static constexpr std::uint32_t kFirstSuspicion = 64;
  static constexpr std::size_t kWindow = 32;

  [[nodiscard]] std::uint32_t generation(NodeId n) const {
    return n.index < first_ || n.index - first_ >= generations_.size()
               ? 0
               : generations_[n.index - first_];
  }
  void set_generation(NodeId created, std::uint32_t generation) {
    if (created.index < first_) return;
    if (generations_.size() == 0) first_ = created.index;
    while (generations_.size() <= created.index - first_) generations_.push_back(0);
    generations_[created.index - first_] = generation;
  }
  std::vector<RuleId> watch(const Graph& graph, RuleId rule);

  std::uint32_t first_ = 0;                  // created node; those before it are of generation 0
  TrivialArray<std::uint32_t> generations_;  // by node, from the first created one on
  std::uint32_t suspicion_ = kFirstSuspicion;
  bool watching_ = false;
  std::map<std::uint64_t, std::size_t> seen_;  // hash → rewrites in the window by then
  std::vector<RuleId> window_;
};

/// Returns the name of a cycle of rules, starting from the smallest rank: "`a` → `b` → `a`".
std::string describe_cycle(const RunRules& rules, const std::vector<RuleId>& cycle);

}  // namespace pw
