// Gates after the last node.
#pragma once

#include <vector>

#include "rewriter/matcher/node_gates.hpp"

namespace pw {

class FinalGates : SearchPart {
 public:
  FinalGates(SearchScope& scope, NodeGates& nodes) : SearchPart(scope), nodes_(nodes) {}
  bool bind_lists(SearchState& state);
  bool check_read(const SearchState& state, const Match& match);
  void list_members(const SearchState& state, Match& match) const;
  bool check_closed(SearchState& state, const Match& match);
  bool check_where(SearchState& state);
  bool check_assume(SearchState& state, Match& match);
  bool check_absent(SearchState& state);
  bool check_convex(SearchState& state, const Match& match);

 private:
  bool is_there(const std::vector<SearchStep>& steps, std::size_t step, const SearchState& state,
                NodeId& last);
  [[nodiscard]] std::vector<NodeId> candidates(const SearchStep& step,
                                               const SearchState& state) const;

  NodeGates& nodes_;
};

}  // namespace pw
