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

#include "rewriter/engine/run_state.hpp"
#include "rewriter/matcher/probe.hpp"

namespace pw {

/// A node at the time it was seen. It may be gone since, and its name another node's.
struct SeenNode {
  NodeId id;
  std::string name, op;
  std::string text;                ///< "q, s = quant(x)"
  std::vector<std::string> names;  ///< the node's, and those of all its results
};
SeenNode see(const Graph& graph, NodeId node);
/// Returns text with runs of digits as `*`.
std::string without_numbers(std::string_view text);

/// One rewrite, with the pass that made it.
struct RewriteStep {
  RuleId rule;           ///< invalid: a built-in pass
  std::string name;      ///< of the rule, or of the built-in pass
  std::string pass;      ///< the top-level pass that made it
  std::size_t step = 0;  ///< of the pass, from 1 on; of a built-in pass each node is one
};

/// An `ensures` that was violated, so that its strategy was undone.
struct BrokenPromise {
  std::string strategy, promise;
  std::string values;              ///< "count(exp) is 1"
  std::vector<std::string> nodes;  ///< those it counts, made by the strategy first
};

struct Reason {
  std::string code, message;
  Span span;           ///< in the rule set; invalid: the rule's name
  std::size_t at = 0;  ///< of the match's nodes
  std::string help;    ///< empty: that of the code
  std::optional<RewriteStep> taken_by;
  std::optional<BrokenPromise> undone_by;
};

/// A match at the time it appeared.
struct SeenMatch {
  RuleId rule;
  std::string rule_name, base_name;
  Span span;                    ///< of the rule's name
  std::vector<SeenNode> nodes;  ///< in pattern order, then members; none is absent
  std::size_t front = 0;        ///< of `nodes`: the first that is replaced
  std::vector<NodeId> own;      ///< those that are replaced
  std::vector<NodeId> pattern;  ///< by PatternNodeId
  std::string place;            ///< group of the first node, numbers as *
  std::string since;            ///< the pass in which it appeared; empty: in the given graph
  std::size_t leaf = 0;         ///< strategies that had begun to rewrite by then
};

struct MatchRecord {
  std::shared_ptr<const SeenMatch> seen;
  enum class Fate : std::uint8_t {
    standing,
    applied,
    replaced,  ///< another variant of its rule was applied to it
    lost
  } fate = Fate::standing;
  std::optional<RewriteStep> applied;
  std::optional<Reason> why;   ///< why its own passes did not apply it
  std::optional<Reason> loss;  ///< what ended it
  bool starved = false;        ///< a pass with the rule ran then, or later
  std::string missed_by;       ///< the first such pass that began after that
  bool tried = false;
  std::optional<Reason> refusal;  ///< it could not be applied when it was seen
  std::vector<std::string> notes;
};

/// Returns why the match cannot be applied at its place; nothing if it can. Only the places of
/// nodes may change in the graph. `barriers`: it may hold ops with effects. `front`: Reason::at.
std::optional<Reason> refusal_of(Graph& scratch, const RuleLayout& layout, const Match& match,
                                 bool barriers, std::size_t front);

/// Returns true if the strategy, or a part of it, has one of the rules.
bool holds_rule(const Strategy& strategy, const std::set<RuleId>& rules);

class MatchHistory final : public RunWatch {
 public:
  /// Creates a history. `before`: the strategy whose input graph_before() is; empty: the first that
  /// has the rules.
  MatchHistory(RunRules& rules, std::vector<RuleId> asked, const Env& params, std::string before);
  ~MatchHistory() override;

  /// Begins a run; called before each of several consecutive runs on one graph.
  void begin_run();
  /// Finishes the last run: gives the remaining matches their reasons.
  void finish();

  [[nodiscard]] const std::vector<MatchRecord>& records() const;
  /// Returns the number of rewrites in the final history.
  [[nodiscard]] std::size_t rewrites() const;
  /// Returns the graph before the wanted strategy; null if none of that name was reached.
  [[nodiscard]] const Graph* graph_before() const { return before_.get(); }
  /// Returns true if some pass with the rules ran; the next function returns one skipped by its
  /// `when`.
  [[nodiscard]] bool ran() const { return ran_; }
  [[nodiscard]] const std::string& left_out() const { return left_out_; }
  /// Returns true if the rule is followed, opened variants included.
  [[nodiscard]] bool is_asked(RuleId rule) const;
  /// Returns the followed rules, with the variants that frontiers opened to, without frontiers.
  [[nodiscard]] std::vector<RuleId> opened(const Graph& graph);
  /// Returns the rewrites that made nodes of graph_before().
  [[nodiscard]] const std::map<NodeId, RewriteStep>& makers() const { return makers_; }

  void begin_pass(const Strategy& pass, RunState& run) override;
  void reach(const Strategy& strategy, bool wanted, RunState& run) override;
  void rewrote(const Strategy& strategy, RunState& run) override;
  void end(const Strategy& strategy, StopReason stop, RunState& run) override;
  void save(RunState& run) override;
  void try_alternative(std::size_t i) override;
  void broken(const Strategy& strategy, const Expr& promise, const Ensured& ensured,
              RunState& run) override;
  void restore() override;
  void chose(const Strategy& strategy, const Choice& choice) override;
  void release() override;

 private:
  using Key = std::pair<RuleId, std::vector<NodeId>>;  ///< nodes by id
  /// State that is rolled back with the graph.
  struct State {
    std::vector<MatchRecord> records;
    std::map<Key, std::size_t> known;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> at_node;  ///< standing ones
    std::size_t read = 0;                                                   ///< of the journal
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
  [[nodiscard]] Reason taken_reason(const SeenMatch& seen, const RewriteStep& step,
                                    const MatchEvent& event) const;
  void leave(std::size_t record, MatchRecord::Fate fate);
  void lose(std::size_t record, Reason why);
  [[nodiscard]] std::vector<std::uint32_t> standing_at(NodeId node) const;
  void refresh(RunState& run, bool try_again);
  void prepare_probes(const Graph& graph, const std::vector<RuleId>& ids);
  [[nodiscard]] Probe* probe_of(RuleId rule) const;
  [[nodiscard]] bool probes_hold() const;
  [[nodiscard]] std::optional<Reason> no_longer(const SeenMatch& seen) const;
  void discover(const MatchEvent& event, const Graph& graph);
  void recheck(const MatchEvent& event, const Graph& graph);
  std::size_t add(const Graph& graph, const RuleLayout& layout, const Match& match);
  [[nodiscard]] std::shared_ptr<const SeenMatch> seen_match(const Graph& graph,
                                                            const RuleLayout& layout,
                                                            const Match& match) const;
  void vanish(const std::set<std::size_t>& found);
  void judge(const Strategy& leaf, StopReason stop);
  void judge_rounds(const Strategy& strategy);
  [[nodiscard]] std::optional<Reason> stopped(const Strategy& leaf, StopReason stop,
                                              const SeenMatch& seen) const;
  static bool rewrites_here(const Strategy& strategy);
  [[nodiscard]] bool rewrites_own(const Strategy& strategy) const;
  /// Returns true if the strategy, or a part of it, has the rule of the match.
  [[nodiscard]] bool has(const Strategy& leaf, const SeenMatch& seen) const;
  [[nodiscard]] bool may_run(const Strategy& strategy, const SeenMatch& seen) const;
  [[nodiscard]] std::string made_by(NodeId node, const Journal& journal) const;
  void keep_graph(const RunState& run);
  [[nodiscard]] Outcomes outcomes_since(const State& before) const;
  [[nodiscard]] std::set<std::string> names_of_records() const;
  static void lost_alternative(MatchRecord& record, Reason why);
  /// Restores an outcome. `told`: matches that the history reports, as text.
  void set_back(const MatchRecord& outcome, const Reason& why, const std::set<std::string>& told);
  [[nodiscard]] std::string where(const RewriteStep& step) const;

  RunRules& rules_;
  std::vector<RuleId> asked_;
  std::set<RuleId> asked_set_;
  const Env& params_;
  std::string before_label_;
  State state_;
  std::vector<Frame> frames_;
  std::vector<std::unique_ptr<Probe>> probes_;
  const Graph* probed_ = nullptr;  ///< what the probes were made for
  std::vector<RuleId> probed_rules_;
  std::size_t rules_probed_ = 0;
  std::unique_ptr<Graph> before_;
  std::map<NodeId, RewriteStep> makers_;
  const Strategy* leaf_ = nullptr;           ///< that rewrites now
  std::map<NodeId, RewriteStep> saturated_;  ///< rules' matches in the current `saturate`
  std::size_t leaves_ = 0;                   ///< that have begun
  bool started_ = false, ran_ = false;
  std::string left_out_;
};

}  // namespace pw
