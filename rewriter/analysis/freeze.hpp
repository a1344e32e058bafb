// A pattern as a graph: a node for each of its nodes, inputs for what is free, types and attributes
// chosen so that annotations and simple guards hold. Whether all guards hold is left to the
// matcher, and an attempt that it refuses is discarded.
#pragma once

#include <cstdint>
#include <vector>

#include "rewriter/matcher/matcher.hpp"

namespace pw {

struct Frozen {
  Graph graph;
  std::vector<NodeId> nodes;  ///< by PatternNodeId
  Env params;                 ///< as given, or with integers raised where guards ask about them
};

/// `visible`: the results that are outputs of the graph. Rules with lists or `unless` cannot be
/// frozen.
Result<Frozen> freeze(const RuleSet& rules, const Rule& pattern,
                      const std::vector<PatternValueId>& visible, const Env& params,
                      std::uint64_t attempt);
/// What a rule does not consume of its nodes' results: outputs, and all of `given`.
std::vector<PatternValueId> visible_values(const Rule& rule);
/// Every pattern node is matched once, and nothing must be absent.
bool is_plain(const Rule& rule);

/// Graphs that the rule matches in all its nodes, at most so many; none of the same structure.
struct Sample {
  Frozen frozen;
  Match match;
};
std::vector<Sample> sample_graphs(const RuleSet& rules, RuleId rule, const Env& params,
                                  std::size_t wanted, std::size_t attempts);
/// A match of a plain rule in which each pattern node is the node given for it.
std::optional<Match> match_of(const Graph& graph, const RuleSet& rules, RuleId rule,
                              const Env& params, const std::vector<NodeId>& nodes);
/// The nodes of the graph that the rule replaces, by the nodes its pattern became; sorted.
std::vector<NodeId> own_of(const Rule& rule, const std::vector<NodeId>& nodes);

}  // namespace pw
