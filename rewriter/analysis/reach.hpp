// Selects the rules that may match on a small graph: all ops that they match are in it, or built by
// another selected rule. Passes have thousands of rules, and the graphs of an analysis a few ops.
#pragma once

#include <cstdint>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Ops of the rules, read from their texts once for any number of passes.
struct RuleOps {
  std::vector<OpId> matched;  ///< that must be there: not of members, nor of `unless`
  std::vector<OpId> built;    ///< that the right side may build
};
IdVec<RuleId, RuleOps> ops_of_rules(const RuleSet& rules);

/// Selection among the rules of one pass. A query costs what the rules that match and build the
/// graph's ops cost, not what all rules of the pass cost.
class Reach {
 public:
  Reach(const RuleSet& rules, const IdVec<RuleId, RuleOps>& ops, std::vector<RuleId> ids);
  /// Returns the selected rules in the order of the pass. A frontier opens to others, so with one
  /// nothing is excluded.
  [[nodiscard]] std::vector<RuleId> of(const Graph& graph) const;
  /// Returns the pattern nodes of all of these: the cost of preparing a run of them.
  [[nodiscard]] std::size_t pattern_nodes(const Graph& graph) const;
  [[nodiscard]] const RuleSet& rules() const { return rules_; }

 private:
  const RuleSet& rules_;
  const IdVec<RuleId, RuleOps>& ops_;
  std::vector<RuleId> ids_;
  bool open_ = false;                                ///< there is a frontier
  std::vector<std::uint32_t> always_;                ///< places in ids_ of rules that need no op
  std::vector<std::vector<std::uint32_t>> waiting_;  ///< by op: those for which it is the rarest
};

}  // namespace pw
