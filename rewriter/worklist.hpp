// The matches of one pass that are known and not yet applied, always in step with the graph: the
// smallest position first, then rule rank, then the labels of the matched nodes in pattern order.
#pragma once

#include <queue>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewriter/apply.hpp"
#include "rewriter/loop_guard.hpp"
#include "rewriter/run_state.hpp"
#include "rewriter/search.hpp"

namespace pw {

class Worklist {
 public:
  Worklist(RunState& run, const Strategy& strategy, PassStats& stats);
  StopReason run();

 private:
  /// A candidate: the best match of one rule at one anchor.
  struct Entry {
    std::uint32_t rule = 0;  ///< index in rules_
    NodeId anchor;
    bool live = true;
    std::vector<NodeId> nodes;           ///< in pattern order
    std::vector<NodeId> own;             ///< not given, sorted by id
    std::vector<std::uint64_t> key;      ///< position, rank, labels
    std::vector<std::uint32_t> waiting;  ///< entries that this one goes before
  };
  struct Role {
    std::uint32_t rule;
    PatternNodeId node;
  };
  struct Later {
    const std::vector<Entry>* entries;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      const Entry& x = (*entries)[a];
      const Entry& y = (*entries)[b];
      return x.key != y.key ? x.key > y.key : a > b;
    }
  };
  using Place = std::pair<std::uint32_t, NodeId>;  ///< rule, anchor

  void seed();
  void attempt(std::uint32_t rule, NodeId anchor);
  std::optional<Match> best_match(std::uint32_t rule, NodeId anchor, bool count,
                                  const std::vector<NodeId>* only = nullptr);
  void add(std::uint32_t rule, NodeId anchor, const std::vector<NodeId>& nodes);
  void describe(Entry& entry, const std::vector<NodeId>& nodes) const;
  [[nodiscard]] std::vector<std::uint64_t> key_of(const Entry& entry) const;
  void kill(std::uint32_t entry);
  void rekey();

  std::optional<StopReason> step();
  std::optional<StopReason> take(std::uint32_t entry);
  std::optional<StopReason> replace(std::uint32_t entry, const Match& match);
  void refuse(std::uint32_t rule, NodeId anchor, const Diagnostics& why);
  [[nodiscard]] std::optional<std::uint32_t> blocker_of(const Entry& entry);
  [[nodiscard]] bool goes_before(const Entry& a, const Entry& b) const;
  void advance_cursor(std::uint64_t position, NodeId before, std::uint64_t version);
  void requeue(const Applied& applied);
  void find_anchors(const Role& role, NodeId node, std::set<Place>& out) const;
  bool retry_refused();
  bool release_waiting();

  static std::uint64_t place_key(Place p) {
    return (static_cast<std::uint64_t>(p.first) << 32) | p.second.index;
  }
  [[nodiscard]] const Rule& rule(std::uint32_t i) const { return *rules_[i]->layout.rule; }

  RunState& run_;
  Graph& graph_;
  const Strategy& strategy_;
  PassStats& stats_;
  std::vector<const PreparedRule*> rules_;  // by rank
  std::vector<RuleStats*> rule_stats_;
  std::vector<std::set<std::uint32_t>> over_;  // rules each of rules_ is over
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>
      anchors_;  // op → rules; looked up only
  std::unordered_map<std::uint32_t, std::vector<Role>>
      roles_;  // op → pattern nodes; looked up only
  std::vector<Entry> entries_;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, Later> heap_;
  std::unordered_map<std::uint64_t, std::uint32_t> current_;  // place → live entry; looked up only
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>
      at_node_;                // node → entries; looked up only
  std::set<Place> refused_;    // matches that other nodes stood in the way of
  std::uint64_t version_ = 0;  // of the labels in the keys
  std::uint64_t cursor_ = 0;   // walk: nothing before this label
  std::size_t rewrites_ = 0, limit_ = 0, rewrites_at_retry_ = 0;
  bool force_ = false;  // take an entry although it should wait: those it waits for wait too
  LoopGuard guard_;
};

}  // namespace pw
