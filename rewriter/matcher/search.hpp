// One backtracking search: a rule against one anchor node. The gates of the semantics are methods
// of its parts: NodeGates (with ValueGates and AttributeGates), MemberSearch and FinalGates. The
// first gate that refused the attempt that reached furthest is kept as the reason (N01 to N09,
// N13).
#pragma once

#include <functional>
#include <span>
#include <unordered_set>
#include <vector>

#include "rewriter/matcher/final_gates.hpp"
#include "rewriter/matcher/member_search.hpp"

namespace pw {

class Search {
 public:
  /// Creates a search. `base` is starting_env(); `explain` requests messages.
  Search(const Graph& graph, const RuleLayout& layout, const Env& base, bool explain)
      : scope_(graph, layout, base, explain),
        graph_(graph),
        layout_(layout),
        rule_(*layout.rule),
        nodes_(scope_),
        members_(scope_, nodes_),
        gates_(scope_, nodes_) {}
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Calls `found` for each match, in the written order of choices, until it returns false. A
  /// frontier never matches here, but see look_for_frontiers().
  void run(NodeId anchor, const std::function<bool(const Match&)>& found);
  /// Limits the number of nodes tried in a run: orders of operands multiply.
  void limit_steps(std::uint64_t most) { most_steps_ = most; }
  /// Matches up to equality, and removes nothing. Nodes in `left_out` are not members of `many`; of
  /// members with equal results the first counts.
  void match_equal(const EGraph& equal, const std::unordered_set<NodeId>& left_out) {
    scope_.equal = &equal;
    scope_.left_out = &left_out;
  }
  /// Makes frontiers match too, by their nodes, operands, types and attributes.
  void look_for_frontiers() { frontiers_ = true; }
  /// Searches with each pattern node that is matched once fixed to the node at its PatternNodeId;
  /// an invalid one is free. Swaps, lists and `unless` are searched.
  void run_fixed(std::span<const NodeId> nodes, const std::function<bool(const Match&)>& found);
  [[nodiscard]] const Failure& furthest() const { return scope_.failure; }
  /// Returns the nodes on paths that forbade a match, or excluded a member, since the run began. If
  /// one of them is erased or reads something else, there may be another match.
  [[nodiscard]] const std::vector<NodeId>& in_the_way() const { return scope_.in_the_way; }
  /// Discards cached members; called after each mutation of the graph. Caching lets many attempts
  /// at one list cost no more than one.
  void graph_changed() { members_.graph_changed(); }

 private:
  void start(NodeId anchor);
  [[nodiscard]] std::vector<NodeId> anchors_of(std::span<const NodeId> nodes) const;
  [[nodiscard]] NodeId fixed(PatternNodeId id) const {
    return fixed_.empty() ? NodeId() : fixed_[id.index];
  }
  bool extend(std::size_t step, SearchState& state);
  bool extend_equal(std::size_t step, ValueId value, SearchState& state);
  bool extend_members(std::size_t step, SearchState& state);
  bool try_node(std::size_t step, NodeId node, const SearchState& state);
  bool finish(SearchState& state);
  bool report(const Match& match) { return ++reported_, (*found_)(match); }
  bool split_shape(const SearchState& before);

  SearchScope scope_;
  const Graph& graph_;
  const RuleLayout& layout_;
  const Rule& rule_;
  NodeGates nodes_;
  MemberSearch members_;
  FinalGates gates_;
  bool frontiers_ = false;
  std::span<const NodeId> fixed_;  ///< empty: all are free
  std::uint64_t steps_ = 0;        ///< nodes tried since the run began
  std::uint64_t most_steps_ = std::uint64_t{1} << 17;
  const std::function<bool(const Match&)>* found_ = nullptr;
  std::uint64_t reported_ = 0;  ///< matches
};

}  // namespace pw
