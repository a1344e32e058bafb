// Explains why a rule did not match: the near misses of a graph, each with the first gate that
// refused it. With a pipeline also the fate of every match that existed at some time: applied,
// taken by another rule, undone, or left.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/explain/match_history.hpp"
#include "rewriter/strategies/ranges.hpp"

namespace pw {

/// A near miss. All texts refer to the graph at the time of the miss; its ids are not valid in
/// another one.
struct NearMiss {
  RuleId rule;                ///< the variant that reached furthest
  std::string rule_name;      ///< its full name
  std::size_t rule_size = 0;  ///< nodes of its pattern
  Rejection why;
  std::vector<NodeId> nodes;  ///< matched before it stopped, without `at`
  int gate = 0;               ///< gates passed at the last node
  bool complete = false;      ///< it matched, but was not applied for another reason
  std::string place;          ///< where it is in the model, numbers as *: "layers.*.mlp"
  std::string help;
  std::optional<SeenNode> at;           ///< the node of why.at
  std::vector<std::string> node_names;  ///< of `nodes`
  std::string since;  ///< the pass in which it appeared; empty: in the given graph
  std::optional<RewriteStep> taken_by;     ///< the rewrite that took `at`
  std::string missed_by;                   ///< a pass that has the rule and began after that
  std::optional<BrokenPromise> undone_by;  ///< the reason why the rewrite was undone
  std::vector<std::string> notes;          ///< further facts about it
};

/// Near misses with the same reason at similar places: one for each layer.
struct NearMissGroup {
  NearMiss first;
  std::size_t count = 1;
  std::size_t matched_alike = 0;         ///< matches at like places
  std::vector<std::string> others;       ///< names of the other nodes it stopped at, in order
  std::vector<std::size_t> other_steps;  ///< of those that were taken: the steps that took them
};

/// Rewrites of one rule in one pass.
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
  bool at_found = true;               ///< some graph has a node called ExplainOptions::at
};

/// One pipeline, pass or rule to run, on the graph of one range of tokens.
struct ExplainedRun {
  std::string pipeline;
  TokenRange range;
};

struct ExplainOptions {
  std::string pipeline;  ///< empty: the graph as it is
  /// Pass before which near misses are searched; empty: before the first with the rule.
  std::string before;
  std::string at;        ///< only what concerns a node that had this name at any time
  std::size_t most = 5;  ///< groups
  /// Number of tokens of the steps whose graph is explained, for a pipeline with ranges or
  /// conditions.
  std::optional<std::int64_t> tokens;
  /// Piece that contains a node, if a match must stay within one.
  std::function<std::uint32_t(const Graph&, NodeId)> piece_of;
  /// Runs to make one after another instead of a pipeline; near misses are those of the last graph.
  std::vector<ExplainedRun> runs;
};

/// Explains rules. `reference`: a rule, family or group. Fails if no pipeline or pass has the name,
/// or if no range of the pipeline holds the tokens.
Result<Explanation> explain_rules(const Graph& graph, const RuleSet& rules,
                                  std::string_view reference, const Env& params,
                                  const ExplainOptions& options = {});

/// Returns all near misses of one rule on a graph, best first, one for each place.
std::vector<NearMiss> find_near_misses(const Graph& graph, const RunRules& rules, RuleId rule,
                                       const Env& params);

}  // namespace pw
