// A greedy pass whose result stays alive: after an edit of its input only the rewrites that the
// edit can have touched are undone and decided again. docs/decisions/022 says why the outcome is
// that of a run from scratch. Where that cannot be shown, update() says so and changes nothing that
// may be used.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/trivial_array.hpp"
#include "rewriter/engine.hpp"
#include "rewriter/full_order.hpp"
#include "rewriter/pattern_edges.hpp"

namespace pw {

class KeptPass {
 public:
  struct Counters {
    std::size_t undone = 0;   ///< rewrites taken back
    std::size_t redone = 0;   ///< of these, made again as they were
    std::size_t dropped = 0;  ///< of these, not made again
    std::size_t fresh = 0;    ///< rewrites that the run before had not
    std::size_t asked = 0;    ///< anchors
  };
  KeptPass();
  ~KeptPass();
  KeptPass(const KeptPass&) = delete;
  KeptPass& operator=(const KeptPass&) = delete;

  /// Rewrites from scratch, in the memory of the run before. False: nothing can be kept of such a
  /// run; why() says the reason.
  bool build(std::shared_ptr<const RuleSet> rules, const Strategy& strategy, const Env& params,
             const Graph& input);
  /// After build() or update(): the edited input, with the ids of the one before. `before` is the
  /// input as it was. False: build() is needed; why() says the reason. Where change() asked for it,
  /// it rewrites from scratch.
  bool update(const Graph& before, const Graph& input);
  /// Whether update() did.
  [[nodiscard]] bool rebuilt() const { return !broken_ && !why_.empty(); }
  /// The next update() is by these rules. False: build() is needed; why() says the reason.
  bool change(std::shared_ptr<const RuleSet> rules, const Strategy& strategy);
  [[nodiscard]] const std::string& why() const { return why_; }
  /// Whether it rewrites from scratch.
  [[nodiscard]] bool building() const { return building_; }
  [[nodiscard]] const Graph& graph() const;
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::size_t rewrites() const { return sequence_.size(); }

  /// Makes the same rewrites in `run`, in the order of a run from scratch. `ids`: by node of the
  /// input, that of the run's graph; afterwards by node of graph(). False: one did not match.
  bool replay(RunState& run, const Strategy& strategy, PassStats& stats,
              std::vector<NodeId>& ids) const;

 private:
  friend class RuleEngine;
  static constexpr std::uint32_t kNone = 0xffffffff;
  using Time = std::uint64_t;
  static constexpr Time kNever = ~Time{0}, kStep = Time{1} << 40;
  /// Between rewrites that come one after another where there is not kStep between two kept ones.
  static constexpr Time kFine = Time{1} << 20;

  struct Output {
    ValueId from, to;
    bool exclusive = true;  ///< all that reads `to` read `from` before
  };
  struct Record {
    Time time = 0;
    std::uint64_t key = 0;  ///< its position when it was made
    std::uint32_t rule = 0, verdict = 0, swaps = 0;
    std::uint32_t first_made = 0, made = 0;
    std::uint32_t ids = 0;     ///< in ids_: by number of the pattern; erased, own first; created
    std::uint32_t values = 0;  ///< in values_, by number of the pattern
    std::uint32_t nodes = 0, own = 0, erased = 0, created = 0;  ///< so many
    std::uint32_t outputs = 0, output_count = 0;                ///< in outputs_
    NodeId first_user;                                          ///< new nodes stand before it
    NodeId behind;  ///< without one: behind this, as soon as may be
    bool may_change_nothing = false;
    bool applied = false;
    bool gone = false;  ///< of no run any more
  };
  /// How far around a node nothing is applied that is later than where the walk was then.
  struct Cover {
    std::uint32_t round = 0, reach = 0;
  };
  /// A record in whose way a node may be. `strong`: it matched, made or erased it.
  struct Touch {
    std::uint32_t of = 0;  ///< twice the record, and one if it is strong
    std::uint32_t next = kNone;
    [[nodiscard]] std::uint32_t record() const { return of / 2; }
    [[nodiscard]] bool strong() const { return of % 2 != 0; }
  };
  /// A value of a pattern that its match reads from outside, and who does before and after.
  struct PlannedRead {
    std::uint32_t value = 0;  ///< by number of the pattern
    bool always = false;      ///< its producer's matches may be others now
    bool shared = false;      ///< and those of others that read it
    std::vector<OpId> by;
  };
  /// An output of a match.
  struct PlannedOutput {
    bool exclusive = true;  ///< as of Output
    bool alike = true;      ///< and it keeps its type
    OpId before;            ///< that makes it
  };
  /// Of the rewrites of one rule with one verdict.
  struct Plan {
    bool known = false;
    std::vector<PlannedRead> reads;
    std::vector<PlannedOutput> outputs;
  };
  /// An operand slot, or, without a node, an output of the graph.
  struct Moved {
    NodeId user;
    std::uint32_t slot = 0;
  };
  struct Run;

  // What the engine calls.
  /// The match in `taken` of a rule is to be taken. True: it has been seen to. `entry`: null where
  /// the sweep has come to it.
  bool arrives(std::uint32_t rule, std::uint32_t verdict_number, const RuleEngine::Entry* entry,
               const Verdict& verdict);
  /// The new nodes are there, and nothing else has changed.
  void placed(NodeId first_made);
  void redirects(const Candidate& match, const Recipe& recipe);
  void made();
  void waits_for(NodeId node, NodeId anchor) { waited_.emplace(node.index, anchor); }
  void fail(std::string_view why);

  // Records (kept_records.cpp).
  [[nodiscard]] std::span<const NodeId> nodes_of(const Record& r) const {
    return {ids_.data() + r.ids, r.nodes};
  }
  [[nodiscard]] std::span<const NodeId> erased_by(const Record& r) const {
    return {ids_.data() + r.ids + r.nodes, r.erased};
  }
  [[nodiscard]] std::span<const NodeId> own_of(const Record& r) const {
    return erased_by(r).first(r.own);
  }
  [[nodiscard]] std::span<const NodeId> created_by(const Record& r) const {
    return {ids_.data() + r.ids + r.nodes + r.erased, r.created};
  }
  void note_touches(std::uint32_t record);
  void note_reads(const Record& record);
  void note_unneeded(NodeId node, std::uint32_t record);
  const Plan& plan_of_current();
  void touch(std::uint32_t& head, std::uint32_t record, bool strong) {
    touches_.push_back({2 * record + (strong ? 1 : 0), head});
    head = static_cast<std::uint32_t>(touches_.size() - 1);
  }
  void touch(NodeId node, std::uint32_t record, bool strong) {
    if (node.valid()) touch(touch_head_[node.index], record, strong);
  }
  void touch_value(ValueId value, std::uint32_t record);
  void undo(std::uint32_t record);
  void undo_later(NodeId node, Time time);
  void redo(std::uint32_t record);
  bool revive(NodeId node);
  bool erase(NodeId node);
  [[nodiscard]] ValueId now_called(ValueId value) const;
  [[nodiscard]] std::vector<Moved> uses_of(ValueId value) const;
  [[nodiscard]] Time made_at(NodeId node) const;
  [[nodiscard]] bool stood_then(NodeId node, Time time) const;
  void put(NodeId node, NodeId behind);
  [[nodiscard]] NodeId place_at(NodeId target, Time time) const;

  // Updating (kept_update.cpp).
  bool rewrite();
  void forget();
  [[nodiscard]] bool fits_keeping();
  [[nodiscard]] bool has_awaited_ops(const Graph& graph) const;
  void note_changed(const std::vector<std::vector<char>>& other);
  bool edit(const Graph& before, const Graph& input);
  void pump();
  void settle_sequence();
  [[nodiscard]] std::size_t next_kept(std::uint64_t key);
  [[nodiscard]] bool same(const Record& record, const Candidate& match) const;
  [[nodiscard]] NodeId first_user_of(std::span<const ValueId> writes,
                                     std::span<const NodeId> own) const;
  bool drop(std::uint32_t record);
  bool disturb(std::span<const NodeId> nodes, Time now);
  void uncover(std::span<const NodeId> nodes);
  template <class Visit>
  void for_each_neighbour(NodeId node, const Visit& visit) const;
  std::uint32_t next_round();
  void around(std::span<const NodeId> nodes, std::vector<NodeId>& out) const;
  void ask(std::span<const NodeId> nodes);
  void ask_restored(std::span<const NodeId> nodes);
  Time time_before(std::size_t place);
  void come_to(Time time);
  [[nodiscard]] bool loose_ends_hold() const;

  std::shared_ptr<const RuleSet> rules_;
  const Strategy* strategy_ = nullptr;
  Env params_;
  std::unique_ptr<Run> run_;
  std::string_view again_;       ///< why the next update rewrites from scratch; empty: it does not
  std::vector<NodeId> changed_;  ///< near what the change of a rule may concern
  PatternEdges edges_;
  std::size_t reach_ = 0;
  FullOrder order_;
  std::string why_;
  Counters counters_;

  std::vector<Record> records_;
  TrivialArray<NodeId> ids_;
  TrivialArray<ValueId> values_;
  std::vector<Output> outputs_;
  std::vector<std::uint32_t> sequence_;                 // by time
  std::vector<std::uint32_t> added_;                    ///< by this update, by time
  std::size_t cursor_ = 0;                              ///< in sequence_: what is later than now_
  std::vector<std::pair<Time, std::uint32_t>> undone_;  ///< a heap, the first on top
  std::vector<std::uint32_t> maker_, eraser_;           // by node; kNone: none
  std::vector<std::uint32_t> touch_head_, value_touch_head_;
  TrivialArray<Touch> touches_;
  std::vector<std::vector<Plan>> plans_;                         // by rule and verdict
  std::unordered_map<std::uint32_t, std::vector<Moved>> moved_;  // by index in outputs_
  std::unordered_multimap<std::uint32_t, NodeId> waited_;
  std::multimap<Time, RuleEngine::Entry> deferred_;  ///< by when their nodes are there
  std::unordered_map<std::uint32_t, std::uint32_t> node_here_, value_here_;  // by id of the input
  std::unordered_map<std::uint32_t, std::uint32_t> node_there_;              // the other way round
  std::size_t inputs_nodes_ = 0, inputs_values_ = 0;  // ids that are the same in both

  Time now_ = 0;
  bool building_ = false, broken_ = false, crowded_ = false;
  std::size_t events_ = 0, most_events_ = 0, first_records_ = 0;
  // Of the rewrite at hand.
  Record current_;
  const Candidate* match_ = nullptr;
  const Plan* plan_ = nullptr;
  std::vector<NodeId> current_nodes_, restored_, around_;
  std::vector<NodeId> current_near_;
  std::vector<std::uint32_t> seen_;  // by node: the round
  std::uint32_t round_ = 0;
  std::vector<Cover> covers_;  // by node
  std::uint32_t cover_round_ = 1;
  Time covered_until_ = 0;
  std::vector<std::pair<NodeId, std::uint32_t>> open_;
};

}  // namespace pw
