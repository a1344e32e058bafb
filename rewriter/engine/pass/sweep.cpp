// One walk along the graph takes the place of a queue. If a rule's matches begin at the first node
// that they replace, a match's position is its anchor's label. The walk then finds the matches in
// the order in which they are applied. None is stored, and a matched node is still in the cache
// when it is replaced.
//
// Invariant: a match of a swept rule that may be legal begins at the sweep or after it, or it is an
// entry, or it waits. After a rewrite only anchors that the sweep has passed are matched again; if
// it has just passed them, it goes back. The graph maintains the sweep's place while nodes are
// moved and erased (Graph::mark). Entries, of other rules or of anchors matched again, are dequeued
// when the sweep reaches their position.
#include "rewriter/engine/pass/sweep.hpp"

namespace pw {

/// Returns true if the sweep will reach an anchor and find all matches that begin there. If it has
/// just passed the anchor it goes back: a match there is usually the next one.
bool Sweep::comes_to(NodeId anchor) {
  constexpr int kNear = 4;
  if (pass_.program.finds_of(graph_.op(anchor)) != MatchProgram::kFromFirst) return false;
  if (at_.valid() && graph_.label(anchor) >= graph_.label(at_)) return true;
  NodeId n = anchor;
  for (int i = 0; i < kNear && n != at_; ++i) n = graph_.next(n);
  if (n != at_) return false;
  at_ = anchor;
  return true;
}

/// Offers a match of the sweep's anchor. One stays in `taken` of its rule; among several at one
/// position the order of entries decides.
void Sweep::offer(std::uint32_t index, NodeId anchor, Candidate& c, std::uint32_t verdict) {
  if (offers_ == 0) {
    std::swap(pass_.rules[index].taken, c);
    return note_offer(index, verdict);
  }
  if (++offers_ == 2) queue_offer();
  queue_.push(index, anchor, c, verdict);
}

void Sweep::queue_offer() {
  queue_.push(offered_.rule, offered_.anchor, pass_.rules[offered_.rule].taken, offered_.verdict);
}

std::optional<Sweep::Offer> Sweep::take_offer(std::uint64_t until) {
  if (std::exchange(offers_, 0) != 1) return std::nullopt;
  if (graph_.label(anchor_) != until) return offered_;
  queue_offer();
  return std::nullopt;
}

}  // namespace pw
