// Why did a rule not match? The near misses of a graph, each with the first gate that refused it;
// with a pipeline, also what became of matches that were there and were not taken.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rewriter/rewriter.hpp"

namespace pw {

struct NearMiss {
  RuleId rule;  ///< the variant that came furthest
  Rejection why;
  std::vector<NodeId> nodes;  ///< matched before it stopped, `at` aside
  int gate = 0;               ///< gates passed at the last node
  bool complete = false;      ///< it matched; something else kept it from being applied
  std::string place;          ///< where it is in the model, numbers as *: "layers.*.mlp"
  std::string help;
};

/// Near misses that say the same of like places: one a layer.
struct NearMissGroup {
  NearMiss first;
  std::size_t count = 1;
  std::size_t matched_alike = 0;    ///< matches at like places
  std::vector<std::string> others;  ///< names of the other nodes it stopped at, in order
};

struct Explanation {
  std::size_t matches = 0;            ///< in the graph; with a pipeline, rewrites made
  std::vector<NearMissGroup> groups;  ///< those that came furthest first
};

struct ExplainOptions {
  std::string pipeline;  ///< empty: the graph as it is
  std::string before;    ///< look at the graph before this pass; empty: the first with the rule
  std::string at;        ///< only what concerns the node with this name
  std::size_t most = 5;  ///< groups
  /// The piece a node lies in, where a match must stay within one.
  std::function<std::uint32_t(const Graph&, NodeId)> piece_of;
};

/// `reference`: a rule, family or group. Fails when a pipeline, pass or node has no such name.
Result<Explanation> explain_rules(const Graph& graph, const RuleSet& rules,
                                  std::string_view reference, const Env& params,
                                  const ExplainOptions& options = {});

/// All near misses of one rule on a graph, best first, one for each place.
std::vector<NearMiss> find_near_misses(const Graph& graph, const RuleSet& rules, RuleId rule,
                                       const Env& params);
/// Text with runs of digits as `*`.
std::string without_numbers(std::string_view text);

}  // namespace pw
