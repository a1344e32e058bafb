// Members of lists.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/matcher/node_gates.hpp"

namespace pw {

class MemberSearch : SearchPart {
 public:
  MemberSearch(SearchScope& scope, NodeGates& nodes) : SearchPart(scope), nodes_(nodes) {}
  /// Starts at an anchor that is the root of members, and calls `extend` with the next step until
  /// it returns false.
  void start(NodeId anchor, const std::function<bool(std::size_t, SearchState&)>& extend);
  /// Returns the groups of a step, whose lists the state does not hold yet.
  std::vector<GroupPtr> groups_of(const SearchStep& step, SearchState& state);
  /// Binds what the members of a group have in common.
  void bind_group(const Group& group, SearchState& state);
  /// Discards cached members.
  void graph_changed() {
    if (!groups_at_.empty()) groups_at_ = {};
  }

 private:
  /// The unbound names that a node of a member may bind, for backtracking.
  struct Mark {
    std::vector<PatternValueId> values;
    std::vector<const std::string*> names;
    std::size_t deferred = 0;
    int matched = 0, gate = 0;
  };
  using Fits = std::function<bool()>;
  /// The groups at one value, by the node that makes an anchor one of them.
  struct Groups {
    std::unordered_map<NodeId, std::vector<GroupPtr>> by_first;  ///< looked up only
    std::vector<GroupPtr> open;  ///< that the rest of the pattern may change: any member may do
  };
  const Groups& groups_at(ValueId common, MembersId id);
  [[nodiscard]] std::size_t root_place(MembersId id) const;
  [[nodiscard]] bool settled(MembersId id, const Group& group) const;
  void bind_common(MembersId id, ValueId common, SearchState& state) const;
  /// Candidate nodes for the root of each member; several only if values may be equal.
  using Roots = std::vector<std::vector<NodeId>>;
  std::vector<GroupPtr> read_members(const SearchStep& step, SearchState& state);
  std::vector<GroupPtr> own_members(const SearchStep& step, SearchState& state);
  std::vector<GroupPtr> used_members(const SearchStep& step, SearchState& state);
  [[nodiscard]] Roots roots_of_users(const SearchStep& step, const SearchState& state) const;
  [[nodiscard]] std::string common_key(MembersId id, const std::vector<PatternValueId>& values,
                                       const std::vector<const std::string*>& names,
                                       const SearchState& state) const;
  std::vector<GroupPtr> collect(MembersId id, const Roots& roots, bool last, SearchState& state);
  bool member_node(MembersId id, std::size_t step, NodeId node, SearchState& state,
                   const Fits& fits);
  bool settle(std::size_t from, bool last, SearchState& state, bool* open);
  Mark mark(std::span<const PatternNodeId> ids, const SearchState& state) const;
  static void undo(const Mark& mark, SearchState& state);

  NodeGates& nodes_;
  GroupPtr anchored_;                              ///< the members that include the anchor
  std::unordered_map<ValueId, Groups> groups_at_;  ///< by the value in common; looked up only
};

}  // namespace pw
