// Searches for one rule from any node of its pattern: a match with a given node in it is found from
// there, without a look at the rest of the graph.
#pragma once

#include <memory>
#include <vector>

#include "rewriter/matcher/search.hpp"

namespace pw {

/// The rule laid out from its anchor, then from each other node that is matched once; the first
/// only for rules with lists or `unless`.
std::vector<RuleLayout> layouts_of(const Graph& graph, const RunRules& rules, RuleId id);

/// Ends with the rule set's growing: layouts refer to rules.
class Probe {
 public:
  Probe(const Graph& graph, const RunRules& rules, RuleId rule, const Env& params);

  [[nodiscard]] RuleId rule() const { return rule_; }
  [[nodiscard]] const RuleLayout& layout() const { return layouts_.front(); }
  /// Calls `found` for the matches with this node in a place that is matched once.
  void matches_with(NodeId node, const std::function<void(const Match&)>& found);
  /// Whether these nodes, by PatternNodeId, still are a match; else why not.
  [[nodiscard]] bool still_matches(std::span<const NodeId> nodes, Failure* why);
  /// To be called after each mutation of the graph.
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
