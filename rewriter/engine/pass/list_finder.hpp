// Matches of rules with lists and `unless`.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rewriter/engine/pass/match_queue.hpp"
#include "rewriter/engine/pass/refusals.hpp"
#include "rewriter/matcher/search.hpp"

namespace pw {

class ListFinder {
 public:
  ListFinder(PassState& pass, MatchQueue& queue, Refusals& refusals)
      : pass_(pass), graph_(pass.graph), queue_(queue), refusals_(refusals) {}
  void clear() { searches_.clear(); }
  /// Forgets the searches of the previous anchor.
  void begin_anchor() {
    if (!starts_.empty()) starts_.clear();
  }
  /// Queues the matches that complete a match of the program.
  void accept(std::uint32_t rule, NodeId anchor, const Candidate& c);
  /// Finds the match of an entry in the present graph; nothing if it differs now, in which case the
  /// new one is queued.
  std::optional<Match> find_again(const MatchQueue::Entry& entry);
  /// Returns one match for each set of nodes: of its allowed assignments the one with the smallest
  /// labels; among equals the first found. `nodes`: those that are matched once.
  std::vector<Match> matches_at(std::uint32_t rule, NodeId anchor,
                                const std::vector<NodeId>& nodes) {
    return matches_of(rule, start_of(rule, anchor, nodes));
  }
  /// Discards cached members; called after each rewrite.
  void graph_changed() {
    for (const std::unique_ptr<Search>& search : searches_)
      if (search) search->graph_changed();
  }

 private:
  [[nodiscard]] NodeId anchor_now(const MatchQueue::Listed& known, std::uint32_t rule) const;
  void push(std::uint32_t rule, NodeId anchor, Match match);
  std::vector<Match> matches_of(std::uint32_t rule, const std::vector<NodeId>& nodes);
  Search& search_of(std::uint32_t rule);
  [[nodiscard]] std::vector<NodeId> start_of(std::uint32_t rule, NodeId anchor,
                                             std::vector<NodeId> nodes) const;

  PassState& pass_;
  Graph& graph_;
  MatchQueue& queue_;
  Refusals& refusals_;
  std::vector<std::unique_ptr<Search>> searches_;  ///< by rule
  /// Searches already run at the current anchor: the rule, the nodes from which it started.
  std::vector<std::pair<std::uint32_t, std::vector<NodeId>>> starts_;
};

}  // namespace pw
