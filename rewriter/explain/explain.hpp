// Why did a rule not match? The near misses of a graph, each with the first gate that refused it;
// with a pipeline, also the fate of every match that stood at some time: applied, taken by another
// rule, undone, or left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/explain/match_history.hpp"
#include "rewriter/strategies/ranges.hpp"

namespace pw {

/// All texts are of the graph as it was when the miss was seen; ids mean nothing in another one.
struct NearMiss {
  RuleId rule;                ///< the variant that came furthest
  std::string rule_name;      ///< its full name
  std::size_t rule_size = 0;  ///< nodes of its pattern
  Rejection why;
  std::vector<NodeId> nodes;  ///< matched before it stopped, `at` aside
  int gate = 0;               ///< gates passed at the last node
  bool complete = false;      ///< it matched; something else kept it from being applied
  std::string place;          ///< where it is in the model, numbers as *: "layers.*.mlp"
  std::string help;
  std::optional<SeenNode> at;              ///< the node of why.at
  std::vector<std::string> node_names;     ///< of `nodes`
  std::string since;                       ///< the pass it came up in; empty: as given
  std::optional<RewriteStep> taken_by;     ///< the rewrite that took `at`
  std::string missed_by;                   ///< a pass that has the rule and began after that
  std::optional<BrokenPromise> undone_by;  ///< what took the rewrite back
  std::vector<std::string> notes;          ///< what else is to be known of it
};

/// Near misses that say the same of like places: one a layer.
struct NearMissGroup {
  NearMiss first;
  std::size_t count = 1;
  std::size_t matched_alike = 0;         ///< matches at like places
  std::vector<std::string> others;       ///< names of the other nodes it stopped at, in order
  std::vector<std::size_t> other_steps;  ///< of those that were taken: the steps that took them
};

/// The rewrites of one rule in one pass.
struct AppliedGroup {
  RewriteStep first;
  std::vector<std::string> nodes;  ///< that the first one matched
  std::size_t count = 1;
};

struct Explanation {
  std::size_t matches = 0;            ///< in the graph; with a pipeline, rewrites made
  std::vector<NearMissGroup> groups;  ///< those that came furthest first
  std::vector<AppliedGroup> applied;  ///< with a pipeline, in order
  std::optional<TokenRange> range;    ///< of a pipeline with ranges: the one explained
  bool otherwise = false;             ///< the graph for steps that do not meet its conditions
  bool at_found = true;               ///< some graph had a node called ExplainOptions::at
};

/// One pipeline, pass or rule that is run, on the graph of one range of tokens.
struct ExplainedRun {
  std::string pipeline;
  TokenRange range;
};

struct ExplainOptions {
  std::string pipeline;  ///< empty: the graph as it is
  /// Near misses are those of the graph before this pass; empty: before the first with the rule.
  std::string before;
  std::string at;        ///< only what concerns a node of this name, at whatever time it had it
  std::size_t most = 5;  ///< groups
  /// Of a pipeline with ranges or conditions: the graph for steps of so many tokens.
  std::optional<std::int64_t> tokens;
  /// The piece a node lies in, where a match must stay within one.
  std::function<std::uint32_t(const Graph&, NodeId)> piece_of;
  /// Instead of a pipeline: these, one after another; near misses are those of the last graph.
  std::vector<ExplainedRun> runs;
};

/// `reference`: a rule, family or group. Fails when a pipeline or pass has no such name, or
/// no range of the pipeline holds the tokens.
Result<Explanation> explain_rules(const Graph& graph, const RuleSet& rules,
                                  std::string_view reference, const Env& params,
                                  const ExplainOptions& options = {});

/// All near misses of one rule on a graph, best first, one for each place.
std::vector<NearMiss> find_near_misses(const Graph& graph, const RunRules& rules, RuleId rule,
                                       const Env& params);

}  // namespace pw
