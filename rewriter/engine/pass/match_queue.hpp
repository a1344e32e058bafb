// Pending matches of a pass in their total order: position, rank, labels in pattern order.
//
// The problem: the first of up to a million matches must be found again after each rewrite, which
// may erase nodes of pending matches and move others. The queue is lazy, as in lazy deletion from a
// binary heap: matches found by seeding are sorted once, later ones join the heap, and no entry is
// searched for when a node changes. An entry holds ids only; its match is bound again when it is
// dequeued.
//
// Invariant: a stored position is at most the present one, since nodes move only to larger labels.
// A stale entry therefore surfaces too early and goes back. After labels were spread over the whole
// order, all positions are read again. Cost: O(log n) for an entry, without allocation.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rewriter/engine/pass/pass_state.hpp"

namespace pw {

class MatchQueue {
 public:
  struct Entry {
    std::uint64_t position = 0;
    std::uint32_t rule = 0;
    std::uint32_t at = 0;  ///< in pool_, or of a rule with lists in listed_
  };
  /// A match of a rule with lists.
  struct Listed {
    Match match;
    NodeId anchor;
  };

  explicit MatchQueue(PassState& pass) : pass_(pass), graph_(pass.graph) {}
  void clear();

  /// While seeding, entries are not ordered; end_seeding() sorts them.
  void begin_seeding() { seeding_ = true; }
  void reserve_seeds();
  void end_seeding();
  [[nodiscard]] bool seeding() const { return seeding_; }
  [[nodiscard]] const std::vector<Entry>& seeds() const { return seeds_; }

  void push(std::uint32_t rule, NodeId anchor, const Candidate& c, std::uint32_t verdict) {
    add(store(rule, anchor, c, verdict));
  }
  /// Adds a match of a rule with lists, and counts its set of nodes as queued.
  void push_listed(std::uint32_t rule, std::uint64_t position, Listed listed);
  /// Puts a dequeued entry back at its present position.
  void put_back(const Entry& entry, std::uint64_t position);
  /// Keeps a dequeued entry, or a match without one, until nothing else is pending.
  void park(const Entry& entry);
  void park(std::uint32_t rule, NodeId anchor, const Candidate& c, std::uint32_t verdict);
  [[nodiscard]] bool any_parked() const { return !parked_.empty(); }
  void release_parked();

  /// Returns true if the same match is pending. Its position may be stale.
  [[nodiscard]] bool is_pending(std::uint32_t rule, NodeId anchor, const Candidate& c,
                                std::uint32_t verdict) const;
  /// Does the same for the match in the registers.
  [[nodiscard]] bool holds_registers(std::uint32_t rule, NodeId anchor) const;
  /// Returns true if a match of a rule with lists has this key.
  [[nodiscard]] bool holds_key(const std::vector<std::uint32_t>& key) const {
    return queued_.contains(key);
  }

  [[nodiscard]] bool empty() const { return heap_.empty() && seeds_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size() + seeds_.size(); }
  [[nodiscard]] std::uint64_t next_position() const;
  /// Reads all positions again if labels were spread; their order did not change.
  void refresh() {
    if (version_ != graph_.renumberings()) rekey();
  }
  /// Removes and returns the first entry.
  Entry next();

  /// Binds the match of an entry again, in `taken` of its rule. Returns false if it is gone.
  bool bind(const Entry& entry);
  [[nodiscard]] NodeId anchor_of(const Entry& entry) const;
  [[nodiscard]] std::uint32_t verdict_of(const Entry& entry) const {
    return pool_[entry.at + kVerdict];
  }
  [[nodiscard]] Listed& listed(const Entry& entry) { return listed_[entry.at]; }

 private:
  /// Offsets in pool_ from the start of an entry: its rule, the previous entry of the same anchor,
  /// the anchor, the verdict's number, a mask of swaps, the nodes by PatternNodeId.
  enum Field : std::uint8_t { kRule, kEarlier, kAnchor, kVerdict, kSwaps, kNodes };
  static constexpr std::uint32_t kNoEntry = 0xffffffff;
  struct Later {
    const MatchQueue* queue;
    bool operator()(const Entry& a, const Entry& b) const {
      return a.position != b.position ? a.position > b.position : queue->breaks_tie(a, b);
    }
  };
  /// Growing array of words that are not initialised: growing costs only the copy.
  struct Pool {
    std::unique_ptr<std::uint32_t[]> words;
    std::size_t size = 0, room = 0;
    std::uint32_t* add(std::size_t count) {
      if (size + count > room) reserve(2 * (size + count));
      size += count;
      return words.get() + size - count;
    }
    void reserve(std::size_t count) {
      if (count <= room) return;
      std::unique_ptr<std::uint32_t[]> more(new std::uint32_t[count]);
      std::copy_n(words.get(), size, more.get());
      words = std::move(more);
      room = count;
    }
    std::uint32_t& operator[](std::size_t at) { return words[at]; }
    std::uint32_t operator[](std::size_t at) const { return words[at]; }
    [[nodiscard]] const std::uint32_t* data() const { return words.get(); }
  };

  void add(const Entry& entry) {
    heap_.push_back(entry);
    if (!seeding_) std::push_heap(heap_.begin(), heap_.end(), Later{this});
  }
  Entry store(std::uint32_t rule, NodeId anchor, const Candidate& c, std::uint32_t verdict);
  void remember(const Entry& entry);
  void forget(const Entry& entry);
  [[nodiscard]] static std::uint32_t swaps_of(const Candidate& c);
  [[nodiscard]] std::vector<std::uint32_t> key_of(const Entry& entry) const;
  [[nodiscard]] bool breaks_tie(const Entry& a, const Entry& b) const;
  void rekey();

  PassState& pass_;
  const Graph& graph_;
  bool seeding_ = false;
  std::uint64_t version_ = 0;  ///< of the labels in the heap
  /// Data of all entries. Entries refer to it by offset, so that moving one in the heap is cheap.
  Pool pool_;
  std::vector<std::uint32_t> latest_;  ///< by anchor: of the entries that wait, the last one
  std::vector<Entry> heap_, parked_;
  std::vector<Entry> seeds_;  ///< the next one last
  std::vector<Listed> listed_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> queued_;  ///< entries with lists, by key
};

/// Compares labels of the matched nodes in pattern order, then of the members.
bool comes_first(const Graph& graph, const Match& a, const Match& b);

}  // namespace pw
