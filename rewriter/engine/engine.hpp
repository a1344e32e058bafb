// The engine of greedy, walk and once. It has one match program for the rules of the pass and a
// queue of pending matches in the total order (position, rank, labels in pattern order). After each
// rewrite it matches exactly those anchors again whose matches may have changed. The algorithm is
// described in engine.cpp; its parts are in pass/.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "rewriter/engine/loop_guard.hpp"
#include "rewriter/engine/pass/blockers.hpp"
#include "rewriter/engine/pass/match_finder.hpp"
#include "rewriter/engine/pass/replacer.hpp"

namespace pw {

class RuleEngine {
 public:
  RuleEngine(RunState& run, const Strategy& strategy, PassStats& stats);
  StopReason run();
  /// Compiles only; for scan.cpp, without run(). Seeding afterwards rewrites nothing and counts the
  /// matches.
  void ready();
  std::size_t scan();

 private:
  // Compiling and seeding.
  [[nodiscard]] bool opens() const;
  void start();
  /// Derives the data of the rules and compiles the match program for the statistics of the present
  /// graph.
  void compile();
  /// Records the keys of all matches of the input graph, to which `once` is limited.
  void note_first();
  /// Finds the matches of the rules that are not swept, and sorts them by the total order.
  void seed();
  void seed_along_order();
  void seed_beside_sweep();
  void report_progress(std::size_t done, std::size_t total, std::string_view unit) const;
  void finish_stats();

  // Taking matches.
  /// Takes the next match in the total order, from the sweep or the queue. Returns a reason if the
  /// run must stop.
  std::optional<StopReason> step();
  std::optional<StopReason> sweep_on(std::uint64_t until);
  /// Validates an entry and replaces its match. An entry with a stale position goes back to the
  /// queue.
  std::optional<StopReason> take(const MatchQueue::Entry& entry);
  std::optional<StopReason> take_found(std::uint32_t rule, NodeId anchor, std::uint32_t verdict,
                                       const MatchQueue::Entry* entry);
  std::optional<StopReason> take_listed(const MatchQueue::Entry& entry);
  std::optional<StopReason> apply_listed(std::uint32_t rule, NodeId anchor, const Match& match,
                                         std::vector<NodeId> own);
  bool must_wait(std::uint32_t rule, NodeId anchor, const std::vector<NodeId>& own);
  [[nodiscard]] std::optional<StopReason> used_up() const;
  std::optional<StopReason> after_rewrite(std::uint32_t rule, const Delta& delta);
  [[nodiscard]] std::optional<StopReason> find_cycle(std::uint32_t rule, const Delta& delta);
  void note_conditions(const std::vector<Condition>& conditions);
  void ask_under_new_facts();
  bool release_parked();
  bool ask_refused_again();

  PassState pass_;
  RunState& run_;
  Graph& graph_;
  Refusals refusals_;
  MatchQueue queue_;
  ListFinder lists_;
  Sweep sweep_;
  MatchFinder finder_;
  Requeue requeue_;
  Blockers blockers_;
  Replacer replacer_;
  /// Detects cycles of rules, for which fuel and limits would be the only other end.
  LoopGuard guard_;
  std::set<OpId> expected_;    ///< ops that a rewrite has made: no rule is left out for them
  bool expects_more_ = false;  ///< since the program was compiled
  bool new_facts_ = false;     ///< a condition joined the facts, and no verdict has seen it
  bool force_ = false;  ///< take the next match although it should wait: all remaining ones wait
  std::size_t rewrites_ = 0, limit_ = 0, rewrites_at_release_ = 0, rewrites_at_retry_ = 0;
  std::size_t sweep_total_ = 0, sweep_reported_ = 0;  ///< for progress
  std::vector<NodeId> own_;                           ///< of the match at hand, in pattern order
};

}  // namespace pw
