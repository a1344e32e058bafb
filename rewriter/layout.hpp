// What the matcher, the applier and the driver derive from a rule once: the order in which pattern
// nodes are visited from the anchor, what is consumed and read, and for every pattern node the way
// back to the anchor.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// One pattern node to visit, and the visited neighbour it is reached from.
struct Step {
  enum class From : std::uint8_t { anchor, producer, user } from = From::anchor;
  PatternNodeId node;
  PatternValueId via;           ///< producer: the value it makes
  PatternNodeId neighbour;      ///< producer: the visited node that reads `via`
  int operand = 0;              ///< producer: the slot in which it does
  std::vector<int> connectors;  ///< user: the operand slots whose value is bound by then
};

/// One edge on the way from a pattern node to the anchor, as steps between graph nodes.
struct Hop {
  enum class Kind : std::uint8_t {
    producer,
    user_of_result,
    user_of_operand
  } kind = Kind::producer;
  PatternNodeId to;
  int slot = 0;         ///< operand or result of the node one stands on
  bool either = false;  ///< the slot is one of the first two operands of a commutative op
};

enum class VariableKind : std::uint8_t { dim, dtype, sequence };

struct RuleLayout {
  const Rule* rule = nullptr;
  RuleId id;
  std::vector<Step> steps;               ///< fewer than the nodes when the pattern is not connected
  std::vector<PatternNodeId> own;        ///< nodes that are not given, in text order
  std::vector<PatternValueId> consumed;  ///< their results that are not outputs
  std::vector<PatternValueId> outputs;   ///< in the order of Rule::outputs
  std::vector<std::string> reads;  ///< names the replacement reads as operands and does not define
  std::map<std::string, VariableKind, std::less<>> kinds;  ///< variables that stand in types
  IdVec<PatternNodeId, std::vector<Hop>> way_back;  ///< to the anchor; empty for the anchor itself
  [[nodiscard]] bool connected() const { return steps.size() == rule->nodes.size(); }
  /// Every pattern node is matched once and replaces or survives: no lists, no `unless`.
  [[nodiscard]] bool plain() const {
    return rule->members.empty() && rule->unless.empty() && rule->lists.empty();
  }
};

RuleLayout lay_out(const RuleSet& rules, RuleId id);

/// The environment a rule starts from: params, then the table cells of its variant.
Env starting_env(const Rule& rule, const Env& params);
/// The nodes at the end of a way back that starts at `node`, sorted by id.
std::vector<NodeId> nodes_back(const Graph& graph, const Rule& rule, const std::vector<Hop>& way,
                               NodeId node);
/// Whether a value can connect nodes: not a number, not `none`, not a captured constant.
bool connects(const PatternValue& value);

}  // namespace pw
