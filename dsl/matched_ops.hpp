// What a strategy can see of a graph: the ops that its rules' left sides name.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

using OpNames = std::set<std::string, std::less<>>;

struct MatchedOps {
  OpNames named;     ///< by nodes of the left side, those that must not be there included
  OpNames required;  ///< of each of these a match has a node
};

/// By rule; the nodes of a match share values with each other (check_connected). Nothing where the
/// strategy looks at nodes of all ops: dce, cse, costs, patterns without a bottom.
std::optional<std::vector<MatchedOps>> matched_ops(const RuleSet& rules, const Strategy& strategy);

}  // namespace pw
