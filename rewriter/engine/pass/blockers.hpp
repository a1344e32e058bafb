// Matches that must wait for another match.
#pragma once

#include <vector>

#include "rewriter/engine/pass/list_finder.hpp"
#include "rewriter/engine/pass/requeue.hpp"

namespace pw {

class Blockers {
 public:
  Blockers(PassState& pass, Requeue& requeue, Refusals& refusals, ListFinder& lists)
      : pass_(pass), graph_(pass.graph), requeue_(requeue), refusals_(refusals), lists_(lists) {}
  /// Returns the replaced nodes of a match that a match of `rule`, which replaces `own`, must wait
  /// for; empty if it need not wait.
  std::vector<NodeId> blocker_of(std::uint32_t rule, const std::vector<NodeId>& own);

 private:
  [[nodiscard]] std::vector<NodeId> anchors_near(const PassRule& rule,
                                                 const std::vector<NodeId>& own);
  template <class Found>
  void for_each_match(std::uint32_t rule, NodeId anchor, const Candidate& c, Found&& found);

  PassState& pass_;
  Graph& graph_;
  Requeue& requeue_;
  Refusals& refusals_;
  ListFinder& lists_;
};

}  // namespace pw
