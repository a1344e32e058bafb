// Data that the matcher, the applier and the driver derive from a rule once: the order in which
// pattern nodes are visited from the anchor, consumed and read values, and the way back to the
// anchor from every pattern node.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/run_rules.hpp"
#include "rewriter/matcher/search_step.hpp"

namespace pw {

/// Steps through one member of a list, and the relation of its names to the others.
struct MembersLayout {
  std::vector<SearchStep> steps;      ///< the root first
  std::vector<PatternValueId> keys;   ///< named values that all members have in common
  std::vector<std::string> names;     ///< … and all other such names, values' names included
  std::vector<std::string> lists;     ///< names that have an element a member
  std::vector<std::size_t> copied;    ///< nodes whose attributes `..` on the right copies
  std::optional<std::size_t> common;  ///< many: the first operand slot of the root in `keys`
};

enum class VariableKind : std::uint8_t { dim, dtype, sequence };

struct RuleLayout {
  const Rule* rule = nullptr;
  RuleId id;
  /// Steps from the anchor. If the anchor is the root of members, its step comes first, and the
  /// step that finds the members follows what is matched once.
  std::vector<SearchStep> steps;
  bool reached = false;  ///< the steps lead to all nodes
  IdVec<MembersId, MembersLayout> members;
  std::vector<std::vector<SearchStep>> unless;           ///< by Rule::unless
  IdVec<PatternNodeId, std::vector<std::string>> names;  ///< that the node may bind
  std::vector<PatternNodeId> own;                        ///< nodes that are replaced, in text order
  std::vector<PatternValueId> consumed;                  ///< their results that are not outputs
  std::vector<PatternValueId> outputs;                   ///< in the order of Rule::outputs
  std::vector<std::string> reads;  ///< names the replacement reads as operands and does not define
  std::map<std::string, VariableKind, std::less<>> kinds;  ///< variables that stand in types
  /// Names that occur at least twice in the rule: their values decide whether it matches, or what
  /// it makes.
  std::set<std::string, std::less<>> compared;
  IdVec<PatternNodeId, std::vector<Hop>> way_back;  ///< to the anchor; empty for the anchor itself
  [[nodiscard]] bool connected() const { return reached; }
  /// Returns true if every pattern node is matched once and replaced or kept: no lists, no
  /// `unless`.
  [[nodiscard]] bool plain() const {
    return rule->members.empty() && rule->unless.empty() && rule->lists.empty();
  }
};

RuleLayout lay_out(const RunRules& rules, RuleId id);

/// Returns a rule's initial environment: params, then the table cells of its variant.
Env starting_env(const Rule& rule, const Env& params);
/// Returns the nodes at the end of a way back that starts at `node`, sorted by id.
std::vector<NodeId> nodes_back(const Graph& graph, const Rule& rule, const std::vector<Hop>& way,
                               NodeId node);
}  // namespace pw
