// The fate of every match of some rules over a run: recorded when it appears, and followed through
// each rewrite until it is applied, taken by another rule, undone, or left.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewriter/explain/probe_set.hpp"

namespace pw {

/// Returns true if the strategy, or a part of it, has one of the rules.
bool holds_rule(const Strategy& strategy, const std::set<RuleId>& rules);

/// Returns true if the strategy itself, or with its parts, has the rule of the match.
bool has_rule_of(const RunRules& rules, const Strategy& leaf, const SeenMatch& seen);
bool may_run(const RunRules& rules, const Strategy& strategy, const SeenMatch& seen);

class MatchHistory final : public RunWatch {
 public:
  /// Creates a history. `before`: the strategy whose input graph_before() is; empty: the first that
  /// has the rules.
  MatchHistory(RunRules& rules, std::vector<RuleId> followed, const Env& params,
               std::string before);

  /// Begins a run; called before each of several consecutive runs on one graph.
  void begin_run() { state_.read = state_.seen = 0; }
  /// Finishes the last run: gives the remaining matches their reasons.
  void finish();

  [[nodiscard]] const std::vector<MatchRecord>& records() const { return state_.records.all(); }
  /// Returns the number of rewrites in the final history.
  [[nodiscard]] std::size_t rewrites() const { return state_.rewrites; }
  /// Returns the graph before the wanted strategy; null if none of that name was reached.
  [[nodiscard]] const Graph* graph_before() const { return before_.get(); }
  /// Returns true if some pass with the rules ran; the next function returns one skipped by its
  /// `when`.
  [[nodiscard]] bool ran() const { return ran_; }
  [[nodiscard]] const std::string& left_out() const { return left_out_; }
  /// Returns true if the rule is followed, opened variants included.
  [[nodiscard]] bool is_followed(RuleId rule) const;
  /// Returns the followed rules, with the variants that frontiers opened to, without frontiers.
  [[nodiscard]] std::vector<RuleId> opened(const Graph& graph);
  /// Returns the rewrites that made nodes of graph_before().
  [[nodiscard]] const std::map<NodeId, RewriteStep>& makers() const { return makers_; }

  void begin_pass(const Strategy& pass, RunState& run) override;
  void reach(const Strategy& strategy, bool wanted, RunState& run) override;
  void rewrote(const Strategy& strategy, RunState& run) override;
  void end(const Strategy& strategy, StopReason stop, RunState& run) override;
  void save(RunState& run) override {
    frames_.push_back({state_, run.graph.node_bound(), {}, {}, {}});
  }
  void try_alternative(std::size_t i) override { frames_.back().alternative = i; }
  void broken(const Strategy& strategy, const Expr& promise, const Ensured& ensured,
              RunState& run) override;
  void restore() override;
  void chose(const Strategy& strategy, const Choice& choice) override;
  void release() override { frames_.pop_back(); }

 private:
  /// State that is rolled back with the graph.
  struct State {
    MatchRecords records;
    std::size_t read = 0;  ///< of the journal
    std::size_t seen = 0;  ///< of the journal, when all matches were looked for
    std::string pass;
    std::size_t step = 0, rewrites = 0;
  };
  /// Outcomes of matches in a part that is undone.
  using Outcomes = std::vector<MatchRecord>;
  struct Frame {
    State state;
    std::size_t nodes = 0;  ///< ids of the graph
    std::optional<std::size_t> alternative;
    std::map<std::size_t, Outcomes> lost;  ///< by alternative
    std::optional<Reason> broken;
  };

  void start(RunState& run);
  void absorb(RunState& run);
  void absorb(const MatchEvent& event, const Graph& graph);
  void absorb(const BuiltinEvent& event);
  void absorb_saturation(const BuiltinEvent& event);
  void note_applied(const MatchEvent& event, const RewriteStep& step, const Graph& graph);
  void lose_to(const RewriteStep& step, const MatchEvent& event);
  void lose_node(NodeId node, const RewriteStep& step, std::string_view code,
                 const std::string& how);
  void lose(std::size_t record, Reason why);
  void refresh(RunState& run, bool try_again);
  void discover(const MatchEvent& event, const Graph& graph);
  void recheck(const MatchEvent& event, const Graph& graph);
  std::size_t add(const Graph& graph, const RuleLayout& layout, const Match& match);
  void vanish(const std::set<std::size_t>& found);
  void judge(const Strategy& leaf, StopReason stop);
  void judge_rounds(const Strategy& strategy);
  /// Returns true if the strategy that rewrites now has the rule of the match.
  [[nodiscard]] bool runs_now(const SeenMatch& seen) const {
    return leaf_ != nullptr && has_rule_of(rules_, *leaf_, seen);
  }
  [[nodiscard]] bool rewrites_own(const Strategy& strategy) const;
  void keep_graph(const RunState& run);

  RunRules& rules_;
  std::vector<RuleId> followed_;
  std::set<RuleId> followed_set_;
  const Env& params_;
  std::string before_label_;
  State state_;
  std::vector<Frame> frames_;
  ProbeSet probes_;
  std::unique_ptr<Graph> before_;
  std::map<NodeId, RewriteStep> makers_;
  const Strategy* leaf_ = nullptr;           ///< that rewrites now
  std::map<NodeId, RewriteStep> saturated_;  ///< rules' matches in the current `saturate`
  std::size_t leaves_ = 0;                   ///< that have begun
  bool started_ = false, ran_ = false;
  std::string left_out_;
};

}  // namespace pw
