// The ops of a graph that a strategy inspects: those that its rules' left sides name.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

using OpNames = std::set<std::string, std::less<>>;

struct MatchedOps {
  OpNames named;     ///< by nodes of the left side, including absent ones
  OpNames required;  ///< a match has a node of each of these
};

/// Returns the ops by rule; the nodes of a match share values with each other (check_connected).
/// Nothing if the strategy inspects nodes of all ops: dce, cse, costs, patterns without a bottom.
std::optional<std::vector<MatchedOps>> matched_ops(const RuleSet& rules, const Strategy& strategy);

}  // namespace pw
