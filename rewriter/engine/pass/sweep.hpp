// Sweep along the graph, which meets matches in their order instead of queueing them.
#pragma once

#include <optional>
#include <utility>

#include "rewriter/engine/pass/match_queue.hpp"

namespace pw {

class Sweep {
 public:
  /// The only match that begins at an anchor; it is in `taken` of its rule.
  struct Offer {
    std::uint32_t rule = 0, verdict = 0;
    NodeId anchor;
  };

  Sweep(PassState& pass, MatchQueue& queue) : pass_(pass), graph_(pass.graph), queue_(queue) {}
  /// Starts at a node; an invalid one: there is no sweep.
  void start(NodeId first) {
    at_ = first;
    visited_ = 0;
  }
  [[nodiscard]] bool goes_on() const { return at_.valid(); }
  [[nodiscard]] bool goes_on(std::uint64_t until) const {
    return at_.valid() && graph_.label(at_) <= until;
  }
  [[nodiscard]] std::size_t visited() const { return visited_; }
  /// Returns true while the matches of an anchor are offered.
  [[nodiscard]] bool matching() const { return matching_; }
  [[nodiscard]] bool any_offer() const { return offers_ > 0; }

  /// Visits nodes with `attempt` until one has a match, at most `most` nodes and to the position.
  template <class Attempt>
  void visit(std::size_t most, std::uint64_t until, Attempt&& attempt) {
    matching_ = true;
    for (std::size_t i = 0; i < most && goes_on(until) && offers_ == 0; ++i) {
      anchor_ = at_;
      ++visited_;
      if ((pass_.program.finds_of(graph_.op(at_)) & MatchProgram::kFromFirst) != 0) attempt(at_);
      at_ = graph_.next(at_);
    }
    matching_ = false;
  }
  /// Returns the match at the last anchor if it is the first of all; otherwise the matches there
  /// are queued. `until`: the position of the first entry.
  std::optional<Offer> take_offer(std::uint64_t until);

  void offer(std::uint32_t rule, NodeId anchor, Candidate& c, std::uint32_t verdict);
  /// Records the first match of an anchor, which is in `taken`.
  void note_offer(std::uint32_t rule, std::uint32_t verdict) {
    offers_ = 1;
    offered_ = {rule, verdict, anchor_};
  }
  [[nodiscard]] bool comes_to(NodeId anchor);

  /// Lets the graph maintain the sweep's place during a rewrite.
  void begin_rewrite() { graph_.set_mark(at_); }
  void end_rewrite() { at_ = graph_.mark(); }

 private:
  void queue_offer();

  PassState& pass_;
  Graph& graph_;
  MatchQueue& queue_;
  NodeId at_;      ///< next anchor
  NodeId anchor_;  ///< last one
  bool matching_ = false;
  std::size_t offers_ = 0;  ///< matches of the last anchor
  Offer offered_;           ///< the first of them
  std::size_t visited_ = 0;
};

}  // namespace pw
