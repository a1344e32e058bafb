// One walk along the graph takes the place of a queue. If a rule's matches begin at the first node
// that they replace, a match's position is its anchor's label. The walk then finds the matches in
// the order in which they are applied. None is stored, and a matched node is still in the cache
// when it is replaced.
//
// Invariant: a match of a swept rule that may be legal begins at sweep_ or after it, or it is an
// entry, or it waits. After a rewrite only anchors that the sweep has passed are matched again; if
// it has just passed them, it goes back. The graph maintains the sweep's place while nodes are
// moved and erased (Graph::mark). Entries, of other rules or of anchors matched again, are dequeued
// when the sweep reaches their position.
#include "rewriter/engine/engine.hpp"

namespace pw {

/// Seeds the rules that are not swept. Their anchors are few, so that only the ops of other nodes
/// are read.
void RuleEngine::seed_beside_sweep() {
  for (std::size_t i = 0; i < graph_.node_bound(); ++i) {
    const NodeId node(i);
    if (i % kTold == 0) tell(i, graph_.node_bound(), "nodes");
    if ((program_.finds_of(graph_.op(node)) & MatchProgram::kElsewhere) != 0 && graph_.alive(node))
      attempt(node);
  }
}

/// Returns the position of the first entry.
std::uint64_t RuleEngine::next_position() const {
  std::uint64_t out = ~std::uint64_t{0};
  if (!heap_.empty()) out = heap_.front().position;
  if (!seeds_.empty()) out = std::min(out, seeds_.back().position);
  return out;
}

/// Returns true if the sweep will reach an anchor and find all matches that begin there. If it has
/// just passed the anchor it goes back: a match there is usually the next one.
bool RuleEngine::comes_to(NodeId anchor) {
  constexpr int kNear = 4;
  if (program_.finds_of(graph_.op(anchor)) != MatchProgram::kFromFirst) return false;
  if (sweep_.valid() && graph_.label(anchor) >= graph_.label(sweep_)) return true;
  NodeId n = anchor;
  for (int i = 0; i < kNear && n != sweep_; ++i) n = graph_.next(n);
  if (n != sweep_) return false;
  sweep_ = anchor;
  return true;
}

/// Offers a match of the sweep's anchor. One stays in `taken` of its rule; among several at one
/// position the order of entries decides.
void RuleEngine::offer(std::uint32_t index, NodeId anchor, Candidate& c, std::uint32_t verdict) {
  if (offers_ == 0) {
    std::swap(rules_[index].taken, c);
    return note_offer(index, verdict);
  }
  if (++offers_ == 2) keep_offer(anchor);
  push_entry(index, anchor, c, verdict);
}

/// Records the first match of an anchor, which is in `taken`.
void RuleEngine::note_offer(std::uint32_t index, std::uint32_t verdict) {
  offers_ = 1;
  offered_ = index;
  offered_verdict_ = verdict;
}

void RuleEngine::keep_offer(NodeId anchor) {
  push_entry(offered_, anchor, rules_[offered_].taken, offered_verdict_);
}

/// Walks to the next anchor with a match, at most to the position of the first entry, and takes the
/// match.
std::optional<StopReason> RuleEngine::sweep_on(std::uint64_t until) {
  sweeping_ = true;
  while (sweep_.valid() && offers_ == 0 && graph_.label(sweep_) <= until) {
    if (sweep_told_ <= swept_nodes_) {
      tell(std::min(swept_nodes_, sweep_total_), sweep_total_, "nodes");
      sweep_told_ += kTold;
    }
    sweep_by_interpreter(until);
  }
  sweeping_ = false;
  if (std::exchange(offers_, 0) != 1) return std::nullopt;
  if (graph_.label(asked_last_) != until)
    return take_found(offered_, asked_last_, offered_verdict_, nullptr);
  keep_offer(asked_last_);
  return std::nullopt;
}

void RuleEngine::sweep_by_interpreter(std::uint64_t until) {
  for (std::size_t i = 0; i < kTold && sweep_.valid() && graph_.label(sweep_) <= until; ++i) {
    asked_last_ = sweep_;
    ++swept_nodes_;
    if ((program_.finds_of(graph_.op(sweep_)) & MatchProgram::kFromFirst) != 0) attempt(sweep_);
    sweep_ = graph_.next(sweep_);
    if (offers_ > 0) return;
  }
}

}  // namespace pw
