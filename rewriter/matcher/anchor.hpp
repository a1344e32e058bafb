// Chooses the anchor of a rule, and the order in which its nodes are found from there.
#pragma once

#include <set>
#include <vector>

#include "rewriter/matcher/search_step.hpp"
#include "rewriter/strategies/statistics.hpp"

namespace pw {

/// Cheapest order of the nodes that are matched once. Producers follow from their readers; the
/// number of other users of a value is the graph's average.
struct SearchPlan {
  PatternNodeId anchor;
  std::vector<SearchStep> steps;
  double cost = 0;  ///< nodes visited over the whole graph
};
/// Returns the cheapest plan over all anchors; among equals the first in text order. Empty if the
/// pattern is not connected. `begun`: ops at which other rules are anchored.
SearchPlan plan_search(const Rule& rule, const GraphStatistics& statistics,
                       const std::set<OpId>& begun);

/// Returns the cheapest plan from one anchor.
SearchPlan plan_search_from(const Rule& rule, PatternNodeId anchor,
                            const GraphStatistics& statistics);

/// Returns true if the compiled program finds the node: it is in neither a list nor an `unless`.
inline bool matched_once(const PatternNode& node) {
  return !node.members.valid() && node.negation < 0;
}

/// Returns the cheapest way from each pattern node to the anchor.
IdVec<PatternNodeId, std::vector<Hop>> find_ways_back(const RuleSet& rules, const Rule& rule,
                                                      PatternNodeId anchor);

}  // namespace pw
