// The naive matcher: backtracking over the pattern, node by node, with every gate of the semantics
// written out. It is slow, and kept as the oracle of the compiled matcher.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dsl/run_rules.hpp"

namespace pw {

/// What an `assume` rests on where it is neither proved nor refuted: it holds for the steps that
/// meet all of these.
struct Condition {
  Compare op = Compare::eq;
  DimId a, b;            ///< a op b; both invalid where the guard does not compare dims
  bool divides = false;  ///< instead: a is a multiple of b
  Span span;             ///< of the guard
  std::string text;      ///< as written, for people
};

struct Match {
  RuleId rule;
  std::vector<NodeId> nodes;  ///< by PatternNodeId; invalid for those of members and `unless`
  /// By MembersId, then by member: the nodes in the order of Members::nodes.
  std::vector<std::vector<std::vector<NodeId>>> members;
  Env env;                            ///< everything bound, params and table cells included
  std::vector<Condition> conditions;  ///< of `assume`
};

/// Why a candidate failed: the first gate that rejected the attempt that came furthest.
struct Rejection {
  std::string code;     ///< "N05"
  std::string message;  ///< "w: f32[64] is not T[d] with T = bf16"
  Span span;            ///< in the rule
  NodeId at;
  int matched = 0;  ///< pattern nodes matched before
};

/// Tries the rule with its first non-given node of text order on `anchor`; first match in the
/// written order of choices.
std::optional<Match> match_at(const Graph& graph, const RunRules& rules, RuleId rule, NodeId anchor,
                              const Env& params, Rejection* why = nullptr);
/// The pattern node that match_at anchors on.
PatternNodeId anchor_of(const Rule& rule);
/// All matches of a rule, in the order of their position (smallest label among consumed nodes). A
/// set of nodes is one match: of the ways to see it that `fits` lets through, the first.
std::vector<Match> find_matches(const Graph& graph, const RunRules& rules, RuleId rule,
                                const Env& params,
                                const std::function<bool(const Match&)>& fits = nullptr);
/// The rules with each frontier that fits somewhere replaced by the variants it opens, to the depth
/// that the graph has; other frontiers are left out. References into `rules` end.
std::vector<RuleId> opened_rules(const Graph& graph, RunRules& rules,
                                 const std::vector<RuleId>& ids, const Env& params);
/// Whether a frontier fits anywhere: nodes, operands, types and attributes only.
bool frontier_fits(const Graph& graph, const RunRules& rules, RuleId frontier, const Env& params);
/// The rejection of the best near miss anywhere in the graph; nothing if the rule matches or no
/// node has its op.
std::optional<Rejection> explain(const Graph& graph, const RunRules& rules, RuleId rule,
                                 const Env& params);

}  // namespace pw
