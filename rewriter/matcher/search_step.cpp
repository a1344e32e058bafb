#include "rewriter/matcher/search_step.hpp"

namespace pw {

bool connects(const PatternValue& value) {
  return !value.literal && !value.literal_none && !value.attribute_variable;
}

std::optional<std::size_t> common_slot(const Rule& rule, MembersId members) {
  const std::vector<PatternValueId>& operands = rule.nodes[rule.members[members].root].operands;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const PatternValue& value = rule.values[operands[i]];
    if (!value.list && !value.name.empty() && connects(value)) return i;
  }
  return std::nullopt;
}

}  // namespace pw
