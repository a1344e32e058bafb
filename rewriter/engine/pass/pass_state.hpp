// State that the parts of the engine share while they run one pass: its rules, the match program
// compiled for them, and what limits the matches that count.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <vector>

#include "rewriter/engine/pass/pass_rule.hpp"

namespace pw {

/// Cursor of `walk`: matches before it are not taken. Inactive in other passes.
class WalkCursor {
 public:
  WalkCursor(const Graph& graph, bool active) : graph_(graph), active_(active) {}
  [[nodiscard]] bool active() const { return active_; }
  /// Moves to the place of the first replaced node, so that new nodes after that place are ahead.
  void move_to(NodeId front) {
    label_ = graph_.label(front);
    version_ = graph_.renumberings();
    node_ = graph_.next(front);  // a dead node still has its successor
    while (node_.valid() && !graph_.alive(node_)) node_ = graph_.next(node_);
    moved_ = true;
  }
  /// Returns true if the walk has passed the position. A match that was tried and undone may have
  /// changed labels.
  [[nodiscard]] bool passed(std::uint64_t position) {
    if (!active_) return false;
    if (moved_ && version_ != graph_.renumberings()) {
      version_ = graph_.renumberings();
      label_ = node_.valid() ? graph_.label(node_) : ~std::uint64_t{0};
    }
    return position < label_;
  }

 private:
  const Graph& graph_;
  bool active_, moved_ = false;
  std::uint64_t label_ = 0;    ///< nothing before it
  std::uint64_t version_ = 0;  ///< of the labels it is one of
  NodeId node_;                ///< the first node that is not before it
};

struct PassState {
  PassState(RunState& run_state, const Strategy& of, PassStats& statistics)
      : run(run_state),
        graph(run_state.graph),
        strategy(of),
        stats(statistics),
        constant(graph.context().ops.find(Primitive::constant)),
        once(of.kind == ast::Strategy::Kind::once),
        careful(once),
        steps(run_state.options.limits.matcher_steps),
        cursor(graph, of.kind == ast::Strategy::Kind::walk) {}

  RunState& run;
  Graph& graph;
  const Strategy& strategy;
  PassStats& stats;
  const OpId constant;
  const bool once;
  bool careful;  ///< only legal matches are kept: one that becomes legal later does not count
  std::uint64_t steps;  ///< of the matcher, at an anchor
  WalkCursor cursor;
  bool local = false;           ///< matches depend on their nodes, types and uses alone
  bool any_lists = false;       ///< some rule depends on absent nodes, or on the number of nodes
  std::vector<PassRule> rules;  ///< by rank
  MatchProgram program;
  std::unique_ptr<Registers> registers;
  std::unique_ptr<CountingTrace> trace;  ///< null without RewriteOptions::stats
  /// once: the matches of the input graph, by key. One that a rewrite blocks may come back.
  std::set<std::vector<std::uint32_t>> first;

  /// Returns a key that is equal for all assignments of a rule to one set of nodes.
  [[nodiscard]] static std::vector<std::uint32_t> key(std::uint32_t rule,
                                                      const std::vector<NodeId>& nodes) {
    std::vector<std::uint32_t> out{rule};
    for (NodeId n : nodes) out.push_back(n.index);
    std::sort(out.begin() + 1, out.end());
    return out;
  }
  /// Returns true unless `once` runs and the input graph lacks the match.
  [[nodiscard]] bool counts(std::uint32_t rule, const std::vector<NodeId>& nodes) const {
    return !once || first.contains(key(rule, nodes));
  }
};

/// Timer of one rule until the end of the scope; active with RewriteOptions::stats.
class RuleTimer {
 public:
  RuleTimer(const PassState& pass, RuleStats* stats)
      : stats_(pass.trace ? stats : nullptr), start_(now()) {}
  ~RuleTimer() {
    if (stats_ != nullptr) stats_->seconds += std::chrono::duration<double>(now() - start_).count();
  }
  RuleTimer(const RuleTimer&) = delete;
  RuleTimer& operator=(const RuleTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] Clock::time_point now() const {
    return stats_ == nullptr ? Clock::time_point() : Clock::now();
  }
  RuleStats* stats_;
  Clock::time_point start_;
};

}  // namespace pw
