// The anchor of a rule, and the order in which its nodes are found from there.
#pragma once

#include <set>
#include <vector>

#include "rewriter/matcher/search_step.hpp"
#include "rewriter/strategies/statistics.hpp"

namespace pw {

/// The nodes that are matched once, in the order in which they cost least: producers follow from
/// what reads them; other users of a value are as many as the graph has on average.
struct SearchPlan {
  PatternNodeId anchor;
  std::vector<SearchStep> steps;
  double cost = 0;  ///< nodes looked at over the whole graph
};
/// The cheapest over all anchors; the first in text order among equals. Empty when the pattern is
/// not connected. `begun`: ops at which other rules are anchored.
SearchPlan plan_search(const Rule& rule, const GraphStatistics& statistics,
                       const std::set<OpId>& begun);

/// From one anchor.
SearchPlan plan_search_from(const Rule& rule, PatternNodeId anchor,
                            const GraphStatistics& statistics);

/// Whether the compiled program finds the node: it is in no list and in no `unless`.
inline bool matched_once(const PatternNode& node) {
  return !node.members.valid() && node.negation < 0;
}

/// By pattern node: the cheapest way from it to the anchor.
IdVec<PatternNodeId, std::vector<Hop>> find_ways_back(const RuleSet& rules, const Rule& rule,
                                                      PatternNodeId anchor);

}  // namespace pw
