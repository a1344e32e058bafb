// Turns a pattern into a graph: a node for each of its nodes, inputs for free values, types and
// attributes chosen so that annotations and simple guards hold. The matcher checks the other
// guards, and an attempt that it refuses is discarded.
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

/// Builds the graph. `visible`: the results that are outputs of the graph. Rules with lists or
/// `unless` cannot be frozen.
Result<Frozen> freeze(const RuleSet& rules, const Rule& pattern,
                      const std::vector<PatternValueId>& visible, const Env& params,
                      std::uint64_t attempt);
/// Returns the results of a rule's nodes that it does not consume: outputs, and all of `given`.
std::vector<PatternValueId> visible_values(const Rule& rule);
/// Returns true if every pattern node is matched once, and nothing must be absent.
bool is_plain(const Rule& rule);

/// Graphs in which the rule matches all its nodes, up to a number; distinct in structure.
struct Sample {
  Frozen frozen;
  Match match;
};
std::vector<Sample> sample_graphs(const RuleSet& rules, RuleId rule, const Env& params,
                                  std::size_t wanted, std::size_t attempts);
/// Returns a match of a plain rule in which each pattern node is the given node.
std::optional<Match> match_of(const Graph& graph, const RuleSet& rules, RuleId rule,
                              const Env& params, const std::vector<NodeId>& nodes);
/// Returns the nodes that the rule replaces, given the nodes its pattern became; sorted.
std::vector<NodeId> own_of(const Rule& rule, const std::vector<NodeId>& nodes);

}  // namespace pw
