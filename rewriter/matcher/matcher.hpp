// The naive matcher: backtracking over the pattern, node by node, with every gate of the semantics
// written out. Slow; kept as the oracle of the compiled matcher.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/run_rules.hpp"

namespace pw {

/// Condition of an undecided `assume`: the match holds for the steps that meet all of these.
struct Condition {
  Compare op = Compare::eq;
  DimId a, b;            ///< a op b; both invalid if the guard does not compare dims
  bool divides = false;  ///< instead: a is a multiple of b
  Span span;             ///< of the guard
  std::string text;      ///< as written, for people
};

/// Returns the values that a name of a value or of a list is bound to.
std::vector<ValueId> bound_values(const Env& env, const std::string& name);

struct Match {
  RuleId rule;
  std::vector<NodeId> nodes;  ///< by PatternNodeId; invalid for those of members and `unless`
  /// Nodes by MembersId, then by member, in the order of Members::nodes.
  std::vector<std::vector<std::vector<NodeId>>> members;
  Env env;                            ///< everything bound, params and table cells included
  std::vector<Condition> conditions;  ///< of `assume`
};

/// Reason why a candidate failed: the first gate that rejected the attempt that reached furthest.
struct Rejection {
  std::string code;     ///< "N05"
  std::string message;  ///< "w: f32[64] is not T[d] with T = bf16"
  Span span;            ///< in the rule
  NodeId at;
  int matched = 0;  ///< pattern nodes matched before
};

/// Matches the rule with its first non-given node of text order on `anchor`. Returns the first
/// match in the written order of choices.
std::optional<Match> match_at(const Graph& graph, const RunRules& rules, RuleId rule, NodeId anchor,
                              const Env& params, Rejection* why = nullptr);
/// Returns the pattern node that match_at anchors on.
PatternNodeId anchor_of(const Rule& rule);
/// Returns all matches of a rule, in the order of their position (smallest label among consumed
/// nodes). A set of nodes is one match: the first assignment that `fits` accepts.
std::vector<Match> find_matches(const Graph& graph, const RunRules& rules, RuleId rule,
                                const Env& params,
                                const std::function<bool(const Match&)>& fits = nullptr);
/// Returns the rules with each fitting frontier replaced by the variants it opens, to the depth of
/// the graph; other frontiers are omitted. Invalidates references into `rules`.
std::vector<RuleId> opened_rules(const Graph& graph, RunRules& rules,
                                 const std::vector<RuleId>& ids, const Env& params);
/// Returns true if a frontier fits anywhere; checks nodes, operands, types and attributes only.
bool frontier_fits(const Graph& graph, const RunRules& rules, RuleId frontier, const Env& params);
/// Returns the rejection of the best near miss in the graph; nothing if the rule matches or no node
/// has its op.
std::optional<Rejection> explain(const Graph& graph, const RunRules& rules, RuleId rule,
                                 const Env& params);

}  // namespace pw
