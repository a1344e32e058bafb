// Gates of one node: op, arity, and whether it is matched already; and the nodes to try next.
#pragma once

#include <vector>

#include "rewriter/matcher/value_gates.hpp"

namespace pw {

class NodeGates : SearchPart {
 public:
  explicit NodeGates(SearchScope& scope)
      : SearchPart(scope), attributes_(scope), values_(scope, attributes_) {}
  bool admit(const SearchStep& step, NodeId node, SearchState& state);
  bool bind_node(PatternNodeId id, NodeId node, bool swapped, SearchState& state);
  bool check_op(const SearchStep& step, NodeId node, SearchState& state);
  [[nodiscard]] bool commutes(PatternNodeId id, NodeId node) const;
  [[nodiscard]] ValueId connector_of(const SearchStep& step, const SearchState& state) const;
  [[nodiscard]] std::vector<NodeId> users_to_try(const SearchStep& step,
                                                 const SearchState& state) const;
  void reject_users(const SearchStep& step, const SearchState& state);
  /// Evaluates deferred checks to a fixed point. The rest then fails, or stays deferred.
  bool run_deferred(SearchState& state, bool last);
  [[nodiscard]] bool may_split(const SearchState::Deferred& deferred,
                               const SearchState& state) const;
  [[nodiscard]] ValueGates& values() { return values_; }

 private:
  [[nodiscard]] bool is_taken(PatternNodeId id, NodeId node, const SearchState& state) const;
  [[nodiscard]] bool has_output(PatternNodeId id) const;
  bool check_arity(PatternNodeId id, NodeId node, SearchState& state);
  [[nodiscard]] bool is_behind_views(NodeId node, OpId wanted) const;

  AttributeGates attributes_;
  ValueGates values_;
};

}  // namespace pw
