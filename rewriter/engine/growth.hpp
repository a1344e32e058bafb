// Equality saturation (Tate et al. 2009; egg, Willsey et al. 2021): rewriting that keeps both
// sides. The graph holds all forms found so far, new ones at its end, where they may read every
// value. An EGraph records which values are equal, and rules are matched up to equality.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "rewriter/egraph/egraph.hpp"
#include "rewriter/engine/run_state.hpp"
#include "rewriter/matcher/search.hpp"
#include "rewriter/strategies/layout.hpp"
#include "rewriter/strategies/reassociate.hpp"

namespace pw {

/// Application of a rule that made something new, or made two values equal.
struct EqualApplication {
  RuleId rule;
  std::vector<NodeId> matched, created;
  std::vector<std::pair<std::string, ValueId>> bindings;
  std::vector<ValueId> replaced;
};

/// Reason why the growth ended.
enum class GrowthStop : std::uint8_t { complete, nodes, rounds, matches };

/// Growth of an e-graph by the rules of one strategy. The order of applications is deterministic:
/// rounds, then the k-th match of each rule in the order of ranks. A match is applied once; its key
/// consists of the rule and the values it binds.
class Growth {
 public:
  Growth(RunState& run, const Strategy& strategy);

  /// Applies all rules to all new matches, round by round, until a round adds nothing or a limit is
  /// reached. Any prefix is sound.
  GrowthStop grow();
  /// Repeats a rewrite of another strategy here: `matched` are its nodes or forms of them. Returns
  /// the new nodes in the order of the right side; empty if the rule does not match here.
  std::vector<NodeId> repeat(RuleId rule, const std::vector<NodeId>& matched);

  [[nodiscard]] const EGraph& equal() const { return equal_; }
  [[nodiscard]] std::size_t rounds() const { return round_; }
  [[nodiscard]] std::size_t most_nodes() const { return most_nodes_; }
  [[nodiscard]] std::size_t most_matches() const { return most_matches_; }
  std::vector<EqualApplication> applications;
  std::vector<Condition>
      conditions;  ///< of all applications: each may be the reason for an equality
  std::map<RuleId, std::size_t> left;  ///< matches that a limit left unapplied

 private:
  /// A rule as matched here: nothing is consumed, so neither users nor paths block it.
  struct Equation {
    RuleLayout full, open;
    Env base;
    PatternNodeId anchor;
    /// Nodes that it made from members. They are not its members, since its lists would grow
    /// without end.
    std::unordered_set<NodeId> made;
  };
  struct Hash {
    std::size_t operator()(const std::vector<std::uint32_t>& key) const;
  };
  using Matches = std::vector<std::vector<Match>>;  // by equation

  void open(const std::vector<RuleId>& rules, std::vector<RuleId>& out);
  void note_visible(const Rule& rule);
  [[nodiscard]] bool looks_at(OpId op, ValueId operand) const;
  [[nodiscard]] bool full() const { return equal_.size() >= most_nodes_; }
  [[nodiscard]] Matches find_all();
  bool apply_all(const Matches& found);
  bool apply(Equation& equation, const Match& match, std::vector<NodeId>* made);
  [[nodiscard]] std::vector<NodeId> settle(NodeId first_new, std::map<ValueId, ValueId>& instead);
  void note_changes(std::size_t first_application);
  [[nodiscard]] std::vector<NodeId> anchors_near_changes() const;

  RunState& run_;
  Graph& graph_;
  EGraph equal_;
  std::size_t most_nodes_, most_matches_, matches_ = 0;
  std::size_t rounds_, round_ = 0;
  std::vector<Equation> equations_;
  std::optional<Reassociation> reassociation_;
  std::map<std::pair<OpId, std::size_t>, std::set<OpId>> behind_;
  std::set<std::pair<OpId, std::size_t>> shared_;
  std::size_t largest_ = 1;  // nodes of a pattern
  bool everywhere_ = true;
  std::vector<NodeId> changed_;  // since the last search
  std::unordered_set<std::vector<std::uint32_t>, Hash> seen_;
};

}  // namespace pw
