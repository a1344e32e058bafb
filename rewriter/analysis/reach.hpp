// Which rules may come to match on a small graph: all ops that they match are in it, or built by
// another rule that may match. Passes have thousands of rules, and the graphs of an analysis a few
// ops.
#pragma once

#include <cstdint>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// Read from the texts of rules once, for any number of passes.
struct RuleOps {
  std::vector<OpId> matched;  ///< that must be there: not of members, nor of `unless`
  std::vector<OpId> built;    ///< that the right side may build
};
IdVec<RuleId, RuleOps> ops_of_rules(const RuleSet& rules);

/// Of the rules of one pass. Asking costs what the rules that match and build the graph's ops cost,
/// not what all rules of the pass do.
class Reach {
 public:
  Reach(const RuleSet& rules, const IdVec<RuleId, RuleOps>& ops, std::vector<RuleId> ids);
  /// In the order of the pass. A frontier opens to others, so that nothing is left out beside one.
  [[nodiscard]] std::vector<RuleId> of(const Graph& graph) const;
  /// Pattern nodes of all of these: what preparing a run of them costs.
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
