// Steps from pattern node to pattern node: the elements of search plans and layouts.
#pragma once

#include <optional>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Pattern node to visit, and the visited neighbour it is reached from; or all members of a list,
/// by the root of each.
struct SearchStep {
  enum class From : std::uint8_t { anchor, producer, user, members } from = From::anchor;
  PatternNodeId node;
  PatternValueId via;           ///< producer: the value it makes
  PatternNodeId neighbour;      ///< producer: the visited node that reads `via`; else invalid
  int operand = 0;              ///< producer: the slot in which it does
  std::vector<int> connectors;  ///< user, members: the operand slots whose value is bound by then
  MembersId members;            ///< of the root of members: these
};

/// One edge on the way from a pattern node to the anchor, as steps between graph nodes.
struct Hop {
  enum class Kind : std::uint8_t {
    producer,
    user_of_result,
    user_of_operand
  } kind = Kind::producer;
  PatternNodeId to;
  int slot = 0;         ///< operand or result of the current node
  bool either = false;  ///< the slot is one of the first two operands of a commutative op
};

/// Returns the first operand slot of the root that holds one value for all members.
std::optional<std::size_t> common_slot(const Rule& rule, MembersId members);
/// Returns true if a value can connect nodes: not a number, not `none`, not a captured constant.
bool connects(const PatternValue& value);

}  // namespace pw
