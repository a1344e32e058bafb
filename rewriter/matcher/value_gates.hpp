// Gates of operands, results and their types.
#pragma once

#include <vector>

#include "rewriter/matcher/attribute_gates.hpp"

namespace pw {

class ValueGates : SearchPart {
 public:
  ValueGates(SearchScope& scope, AttributeGates& attributes)
      : SearchPart(scope), attributes_(attributes) {}
  bool bind_operands(PatternNodeId id, NodeId node, bool swapped, SearchState& state);
  bool bind_results(PatternNodeId id, NodeId node, SearchState& state);
  bool check_types(PatternValueId id, NodeId node, SearchState& state);
  /// Checks one type of a value. `last`: it can no longer wait for a variable.
  bool check_type(PatternValueId id, std::size_t type, NodeId node, SearchState& state, bool last);

 private:
  [[nodiscard]] bool may_come_from(const PatternValue& wanted, ValueId value) const;
  bool bind_operand(PatternNodeId id, NodeId node, std::size_t slot, std::size_t at,
                    SearchState& state);
  bool bind_list(PatternValueId id, NodeId node, std::vector<ValueId> values, SearchState& state);
  bool bind_none(PatternNodeId id, NodeId node, std::size_t slot, SearchState& state);
  bool bind_constant(PatternNodeId id, NodeId node, std::size_t slot, std::size_t at,
                     SearchState& state);
  bool reads_number(const Attribute& wanted, NodeId node, std::size_t at, NodeId constant) const;
  [[nodiscard]] NodeId literal_of(ValueId value) const;
  bool check_type_of(ValueId value, PatternValueId id, std::size_t type, NodeId node,
                     SearchState& state, bool last);
  bool check_unknown(ValueId value, PatternValueId id, const TypeExpr& wanted, NodeId node,
                     SearchState& state);

  AttributeGates& attributes_;
};

}  // namespace pw
