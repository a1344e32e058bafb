// Searches for one rule from any node of its pattern: a match that contains a given node is found
// from there, without scanning the rest of the graph.
#pragma once

#include <memory>
#include <vector>

#include "rewriter/matcher/search.hpp"

namespace pw {

/// Returns layouts of the rule from its anchor, then from each other node that is matched once.
/// Rules with lists or `unless` have the first only.
std::vector<RuleLayout> layouts_of(const Graph& graph, const RunRules& rules, RuleId id);

/// Searches of one rule. Invalid once the rule set grows: layouts refer to rules.
class Probe {
 public:
  Probe(const Graph& graph, const RunRules& rules, RuleId rule, const Env& params);

  [[nodiscard]] RuleId rule() const { return rule_; }
  [[nodiscard]] const RuleLayout& layout() const { return layouts_.front(); }
  /// Calls `found` for the matches that contain this node in a place that is matched once.
  void matches_with(NodeId node, const std::function<void(const Match&)>& found);
  /// Returns true if these nodes, by PatternNodeId, still match; otherwise stores the reason.
  [[nodiscard]] bool still_matches(std::span<const NodeId> nodes, Failure* why);
  /// Discards cached lists; called after each mutation of the graph.
  void graph_changed();

 private:
  const Graph& graph_;
  const Rule& ast_;
  RuleId rule_;
  Env base_;
  std::vector<RuleLayout> layouts_;
  std::vector<std::unique_ptr<Search>> searches_;  ///< one a layout; they refer to these
  std::unique_ptr<Search> talking_;                ///< of the first layout, with messages
};

}  // namespace pw
