// The engine of greedy, walk and once. It has one match program for the rules of the pass and a
// heap of pending matches in the total order (position, rank, labels in pattern order). After each
// rewrite it matches exactly those anchors again whose matches may have changed. The algorithm is
// described in engine.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/loop_guard.hpp"
#include "rewriter/engine/run_state.hpp"
#include "rewriter/explain/near_miss_codes.hpp"
#include "rewriter/matcher/machine.hpp"
#include "rewriter/strategies/verdicts.hpp"

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
  /// Operand slot of a pattern's node, with the value expected there.
  struct Operand {
    std::uint16_t node = 0, slot = 0;
    std::uint32_t value = 0;
    bool none = false, optional = false;
    bool produced = false;  ///< by a node of the pattern
    bool first = false;     ///< nothing is bound there yet, or the bound value may differ
  };
  /// Result slot of a pattern's node, with the value expected there.
  struct ResultSlot {
    std::uint16_t node = 0, slot = 0;
    std::uint32_t value = 0;
  };
  /// Inputs of the gates, as indices of nodes and values: own nodes, outputs, values that the right
  /// side reads; consumed values with their uses inside.
  struct Ends {
    std::vector<std::uint16_t> own, outputs, reads;
    std::vector<std::pair<std::uint16_t, std::uint32_t>> consumed;
  };
  /// Registers from which a structural match is read, in the rule's numbering. A value that the
  /// program does not find maps to the last register of its kind, which is never written.
  struct Reading {
    std::vector<std::uint16_t> nodes, values, swaps;
    std::vector<std::pair<std::uint32_t, std::uint16_t>> numbers;  ///< value, its node's register
    Verdicts::Places places;                                       ///< the values' and the nodes'
    Ends ends;
  };
  /// A rule of the pass with everything derived from it once.
  struct Prepared {
    const PreparedRule* rule = nullptr;
    std::unique_ptr<Verdicts> verdicts;
    RuleStats* stats = nullptr;
    bool memo = true;            ///< a verdict depends only on types and attributes
    bool lasting = true;         ///< and on nothing that a rewrite may change while the nodes live
    bool lists = false;          ///< members or `unless`: finished by the naive search
    bool ambiguous = false;      ///< one set of nodes may match in several ways
    bool compares = false;       ///< of those, and the program finds some that do not count
    bool permutable = false;     ///< two of its nodes have the same op and may be exchanged
    bool simple = false;         ///< pass_gates() decides the usual case
    bool settled = false;        ///< its verdict remains valid while it waits
    bool swept = false;          ///< found by the sweep, at the first node that it replaces
    bool always_convex = false;  ///< no path can lead from what it defines to what it reads
    std::vector<OpId> ops;       ///< by PatternNodeId
    std::vector<ResultSlot> results;  ///< read by rebind()
    std::vector<Operand> operands;
    Reading reading;
    Ends ends;        ///< in a candidate
    Candidate found;  ///< the structural match at hand
    Candidate taken;  ///< the pending one at hand
    std::vector<PatternValueId> reads, named;
    std::vector<PatternValueId> outside;  ///< values read by own nodes and produced by none of them
    Journal::NamesId names;
    std::vector<std::uint32_t> above;  ///< rules whose matches may block one of this rule
    bool under = false;                ///< one of them is declared over this rule
    std::array<std::uint64_t, kNearMissCodes.size()> rejections{};  ///< by code
    [[nodiscard]] const RuleLayout& layout() const { return rule->layout; }
    [[nodiscard]] const Rule& ast() const { return *rule->layout.rule; }
  };
  /// A pending match. Its nodes are in the pool.
  struct Entry {
    std::uint64_t position = 0;
    std::uint32_t rule = 0;
    std::uint32_t at = 0;  ///< in pool_, or of a rule with lists in listed_
  };
  /// Offsets in pool_ from the start of an entry: its rule, the previous entry of the same anchor,
  /// the anchor, the verdict's number, a mask of swaps, the nodes by PatternNodeId.
  enum Field : std::uint8_t { kRule, kEarlier, kAnchor, kVerdict, kSwaps, kNodes };
  static constexpr std::uint32_t kNoEntry = 0xffffffff;
  struct Later {
    const RuleEngine* engine;
    bool operator()(const Entry& a, const Entry& b) const {
      return a.position != b.position ? a.position > b.position : engine->breaks_tie(a, b);
    }
  };
  /// One set of nodes of an ambiguous rule at the current anchor, in its first assignment.
  struct Choice {
    std::uint32_t rule = 0, verdict = 0;
    bool legal = false;  ///< known to be
    bool waits = false;  ///< an entry exists already
    Candidate best;
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
    void clear() { size = 0; }
    std::uint32_t& operator[](std::size_t at) { return words[at]; }
    std::uint32_t operator[](std::size_t at) const { return words[at]; }
    [[nodiscard]] const std::uint32_t* data() const { return words.get(); }
  };
  class Timed;
  /// Anchors to match again when a node that blocks their matches changes, by that node.
  using Waiters = std::unordered_map<std::uint32_t, std::vector<NodeId>>;

  // Seeding and taking (engine.cpp).
  [[nodiscard]] bool opens() const;
  void start();
  void collect(const std::vector<RuleId>& ids, std::vector<RuleId>& out) const;
  /// Derives the data of all rules of the pass, in the order of ranks.
  void prepare();
  /// Compiles the match program for the statistics of the present graph, and allocates its
  /// registers.
  void compile();
  /// Records the operand and result slots of a pattern, for rebind().
  static void note_slots(Prepared& rule);
  /// Records the own nodes, outputs, reads and consumed values of a rule, for the gates.
  static void note_ends(Prepared& rule);
  /// Determines for each rule the rules whose matches may block one of its matches.
  void find_rules_above();
  /// Records the identities of all matches of the input graph, to which `once` is limited.
  void note_first();
  /// Finds the matches of the rules that are not swept, and sorts them by the total order.
  void seed();
  void seed_by_interpreter();
  void tell(std::size_t done, std::size_t total, std::string_view unit) const;
  /// Runs the match program at one anchor. Ambiguous matches are chosen after it ends.
  void attempt(NodeId anchor);
  void finish_attempt(NodeId anchor);
  void give_up(std::uint32_t rule, NodeId anchor);
  /// Handles a structural match that the program has found. Returns true if exchanges of operands
  /// need not be tried.
  bool accept(std::uint32_t rule, NodeId anchor);
  bool accept_with_care(std::uint32_t rule, NodeId anchor);
  void accept_frontier(std::uint32_t rule, const Candidate& candidate);
  bool choose(std::uint32_t rule, NodeId anchor, const Candidate& candidate);
  Choice& add_choice(std::size_t at, std::uint32_t rule);
  [[nodiscard]] bool has_choice_of(std::uint32_t rule) const;
  [[nodiscard]] bool comes_first(const Prepared& rule, const Candidate& a,
                                 const Candidate& b) const;
  void push(std::uint32_t rule, NodeId anchor, Candidate& candidate, std::uint32_t verdict);
  void push_entry(std::uint32_t rule, NodeId anchor, const Candidate& candidate,
                  std::uint32_t verdict);
  Entry keep(std::uint32_t rule, NodeId anchor, const Candidate& candidate, std::uint32_t verdict);
  [[nodiscard]] bool is_pending(std::uint32_t rule, NodeId anchor, const Candidate& candidate,
                                std::uint32_t verdict) const;
  [[nodiscard]] static std::uint32_t swaps_of(const Candidate& candidate);
  void forget(const Entry& entry);
  void remember(const Entry& entry);
  [[nodiscard]] bool breaks_tie(const Entry& a, const Entry& b) const;
  /// Reads the positions of all entries again. Required after labels were spread over the list.
  void rekey();
  Entry next_entry();
  /// Takes the next match in the total order, from the sweep, the seeds or the heap. Returns a
  /// reason if the run must stop.
  std::optional<StopReason> step();
  /// Validates an entry and replaces its match. An entry with a stale position goes back to the
  /// heap.
  std::optional<StopReason> take(const Entry& entry);
  std::optional<StopReason> take_found(std::uint32_t rule, NodeId anchor, std::uint32_t verdict,
                                       const Entry* entry);
  std::optional<StopReason> after_rewrite(std::uint32_t rule);
  /// Moves the cursor of `walk` to the place of the last rewrite. Matches before it are not taken.
  void move_cursor();
  bool is_behind(std::uint64_t position);
  void note_conditions(const std::vector<Condition>& conditions);
  void ask_under_new_facts();
  /// Returns parked matches to the heap when nothing else is left. Returns false if none was
  /// parked.
  bool release_parked();
  bool ask_refused_again();
  void finish_stats();

  // The sweep (engine_sweep.cpp).
  void sweep_by_interpreter(std::uint64_t until);
  [[nodiscard]] std::uint64_t next_position() const;
  std::optional<StopReason> sweep_on(std::uint64_t until);
  void offer(std::uint32_t rule, NodeId anchor, Candidate& candidate, std::uint32_t verdict);
  void note_offer(std::uint32_t rule, std::uint32_t verdict);
  void keep_offer(NodeId anchor);
  void seed_beside_sweep();
  [[nodiscard]] bool comes_to(NodeId anchor);

  // The first look at a structural match, in the registers (engine_gates.cpp).
  enum class Gate : std::uint8_t { unknown, no, yes };
  /// Decides closedness, convexity and the verdict from registers alone, if possible.
  Gate pass_gates(Prepared& rule);
  /// Result of the quick legality test. `in_place`: legal, and every value it reads precedes all
  /// nodes that it replaces.
  enum class Surely : std::uint8_t { not_known, legal, in_place };
  [[nodiscard]] Surely surely_legal(const Ends& ends, bool always_convex, const NodeId* nodes,
                                    const ValueId* values) const;
  [[nodiscard]] bool waits(std::uint32_t rule, NodeId anchor) const;
  void note_registers(std::uint32_t rule);

  // Legality (engine_legality.cpp).
  void read_candidate(const Prepared& rule, Candidate& out) const;
  bool rebind(const Entry& entry);
  [[nodiscard]] std::uint64_t position_of(const Prepared& rule, const Candidate& c) const;
  /// Reads the values that the right side reads, and those that it redefines.
  static void read_boundary(const Prepared& rule, const Candidate& c, std::vector<ValueId>& reads,
                            std::vector<ValueId>& writes);
  static void read_writes(const Prepared& rule, const Candidate& c, std::vector<ValueId>& writes);
  /// Returns the verdict, valid until the next one of the same rule; null if the match is refused.
  const Verdict* fits(std::uint32_t rule, NodeId anchor, const Candidate& c,
                      const Verdict* known = nullptr);
  bool promising(std::uint32_t rule, NodeId anchor, const Candidate& c);
  /// Runs all gates. Returns the verdict, or null for a refused match, whose anchor may then wait.
  const Verdict* legal(std::uint32_t rule, NodeId anchor, const Candidate& c,
                       const Verdict* known = nullptr);
  bool closed(const Prepared& rule, const Candidate& c) const;
  bool convex(const Prepared& rule, NodeId anchor, const Candidate& c);
  /// Returns true if the match can be placed without crossing an effect.
  bool clear_of_barriers(const Prepared& rule, NodeId anchor, const Candidate& c);
  /// Returns true if every output equals the value that it replaces.
  bool changes_nothing(const Recipe& recipe, const Prepared& rule, const Candidate& c) const;
  bool same_as(const Recipe& recipe, Recipe::Source source, ValueId value,
               const Candidate& c) const;
  static bool reject(Prepared& rule, const char* reason);
  static bool reject(Prepared& rule, const Verdict& verdict);
  [[nodiscard]] static bool is_own(const Prepared& rule, const Candidate& c, NodeId node);
  bool blocked(std::uint32_t rule, NodeId anchor);
  /// Calls `found` with the replaced nodes of each legal match of a structural one.
  template <class Found>
  void for_each_match(std::uint32_t rule, NodeId anchor, const Candidate& c, Found&& found) {
    if (rules_[rule].lists) {
      for (const Match& match : matches_of(rule, listed_candidate(rule, anchor, c.nodes)))
        if (counts(rule, all_nodes(match)) &&
            try_apply(graph_, rules_[rule].layout(), match, run_.barriers) == Trial::changed)
          found(own_nodes_of(rule, match));
      return;
    }
    if (!counts(rule, c.nodes) || !legal(rule, anchor, c)) return;
    std::vector<NodeId> own;
    for (PatternNodeId id : rules_[rule].layout().own) own.push_back(c.nodes[id.index]);
    found(own);
  }
  /// Returns a key of first_: the rule, then the nodes by id.
  [[nodiscard]] static std::vector<std::uint32_t> identity(std::uint32_t rule,
                                                           const std::vector<NodeId>& nodes);
  /// Returns true unless `once` runs and the input graph lacks the match.
  [[nodiscard]] bool counts(std::uint32_t rule, const std::vector<NodeId>& nodes) const {
    return !once_ || first_.contains(identity(rule, nodes));
  }
  [[nodiscard]] NodeId anchor_of_entry(const Entry& entry) const;

  // Lists and `unless` (engine_lists.cpp).
  struct Listed {
    Match match;
    NodeId anchor;
  };
  [[nodiscard]] NodeId anchor_now(const Listed& known, std::uint32_t rule) const;
  std::optional<StopReason> take_listed(const Entry& entry);
  void accept_listed(std::uint32_t rule, NodeId anchor, const Candidate& c);
  void push_listed(std::uint32_t rule, NodeId anchor, Match match);
  void refuse_listed(std::uint32_t rule, NodeId anchor, Diagnostics why);
  std::optional<Match> find_again(const Entry& entry);
  std::vector<Match> matches_of(std::uint32_t rule, const Candidate& c);
  Search& search_of(std::uint32_t rule);
  [[nodiscard]] Candidate listed_candidate(std::uint32_t rule, NodeId anchor,
                                           const std::vector<NodeId>& nodes) const;
  [[nodiscard]] bool comes_first(const Match& a, const Match& b) const;
  [[nodiscard]] bool listed_later(const Entry& a, const Entry& b) const;
  std::vector<NodeId> own_nodes_of(std::uint32_t rule, const Match& match) const;

  // Replacing (engine_replace.cpp).
  /// Replaces a match. `in_place`: the result of Surely, if known.
  void replace(std::uint32_t rule, const Candidate& c, const Recipe& recipe, bool in_place);
  /// Makes the users of the old outputs read the new values, and moves names.
  void redirect(const Prepared& rule, const Candidate& c, const Recipe& recipe);
  /// Erases the consumed nodes, users before producers.
  void erase_matched(const Prepared& rule, const Candidate& c, const Recipe& recipe);
  void erase_what_is_unneeded(const Prepared& rule, const Candidate& c);
  [[nodiscard]] bool is_needed(NodeId node) const;
  /// Returns true if only nodes with changed operands or users need to be touched.
  [[nodiscard]] bool touches_little() const { return local_ && waiters_.empty(); }
  [[nodiscard]] bool stands_for(ValueId made, ValueId old) const;
  void note_touched();
  void collect_own(const Prepared& rule, const Candidate& c);
  [[nodiscard]] ValueId resolve(Recipe::Source source, const Candidate& c) const {
    if (source.absent()) return {};
    return source.fresh() ? new_results_[source.index()] : c.values[source.index()];
  }
  /// Returns true if a change of the node causes any anchor to be matched again.
  [[nodiscard]] bool leads_anywhere(NodeId node) const {
    return !program_.ways_of(graph_.op(node)).empty() || !waiters_.empty();
  }
  void touch(NodeId node) {
    if (!leads_anywhere(node)) return;
    if (touched_.empty() || touched_.back() != node) touched_.push_back(node);
  }
  void touch_producer(ValueId v) {
    if (v.valid() && !graph_.is_input(v)) touch(graph_.producer(v));
  }

  // Requeueing (engine_requeue.cpp).
  /// Matches the anchors again that the last rewrite may affect.
  void requeue();
  void follow(const WayBack& way, NodeId node, std::vector<NodeId>& out);
  void follow_far(const WayBack& way, NodeId node, std::vector<NodeId>& out);
  template <class Arrive>
  void leave(const WayBack::SearchStep& step, NodeId node, Arrive&& arrive) const;
  void ask_again(NodeId anchor, std::vector<NodeId>& out);
  static void sort_once(std::vector<NodeId>& nodes);  ///< each of them once, by id
  /// Matches the anchors again that wait at a node, since the node changed.
  void wake(NodeId node);
  /// Lets an anchor wait until a node changes.
  void wait_for(NodeId node, NodeId anchor);

  RunState& run_;
  Graph& graph_;
  const Strategy& strategy_;
  PassStats& stats_;
  OpId constant_;
  std::vector<Prepared> rules_;  // by rank
  MatchProgram program_;
  std::unique_ptr<Registers> registers_;
  std::unique_ptr<CountingTrace> trace_;
  static constexpr std::size_t kTold = 4096;  ///< nodes or matches between two progress reports
  static constexpr std::uint64_t kLeastSteps = std::uint64_t{1} << 14;
  std::uint64_t steps_ = run_.options.limits.matcher_steps;  ///< at an anchor
  /// Data of all pending matches. Entries refer to it by offset, so that moving an entry in the
  /// heap is cheap.
  Pool pool_;
  std::vector<std::uint32_t> latest_;  ///< by anchor: of the entries that wait, the last one
  /// Pending matches found after seeding, as a heap by the total order, and those that are blocked
  /// by another match.
  std::vector<Entry> heap_, parked_;
  std::vector<Entry> seeds_;  ///< found by seeding, the next one last
  /// once: the matches of the input graph. One that a rewrite blocks may come back.
  std::set<std::vector<std::uint32_t>> first_;
  /// Anchors of blocked matches, by the node that blocks them. A waiting anchor has no entry for
  /// the match.
  Waiters waiters_;
  std::vector<NodeId> refused_;  ///< anchors with a match that was refused for a path or a barrier

  std::vector<Choice> choices_;  ///< the first choice_count_; the others keep their memory
  std::size_t choice_count_ = 0;
  std::vector<RuleId> frontiers_;  ///< that fit somewhere, and are to be opened
  std::set<OpId> expected_;        ///< ops that a rewrite has made: no rule is left out for them
  bool expects_more_ = false;      ///< since the program was compiled
  std::vector<Listed> listed_;     ///< matches of rules with lists; an entry's `at` counts these
  /// Pending matches by identity().
  std::map<std::vector<std::uint32_t>, std::uint32_t> queued_;
  std::vector<std::unique_ptr<Search>> searches_;  ///< by rule; of rules with lists
  /// Searches already run at the current anchor, by rule.
  std::vector<std::pair<std::uint32_t, std::vector<NodeId>>> asked_;

  NodeId sweep_;               ///< next anchor of the sweep; invalid: none
  bool sweeping_ = false;      ///< it is matching an anchor
  std::size_t offers_ = 0;     ///< matches of that anchor
  std::uint32_t offered_ = 0;  ///< the rule of the first of them
  std::uint32_t offered_verdict_ = 0;
  NodeId asked_last_;
  std::size_t swept_nodes_ = 0, sweep_total_ = 0, sweep_told_ = 0;  ///< for progress

  bool in_place_ = false;  ///< result of Surely for the match that fits() checked last

  // State of the current rewrite.
  NodeId first_new_;
  std::vector<NodeId> created_, erased_, touched_;
  std::vector<ValueId> new_results_, operands_, reads_, writes_, named_values_;
  std::vector<NodeId> own_;
  std::vector<char> were_outputs_, taken_over_;

  std::vector<NodeId> anchors_, again_, here_, there_;
  std::vector<char> barrier_;  ///< by op

  std::uint64_t version_ = 0;         ///< of the labels in the heap
  std::uint64_t cursor_ = 0;          ///< walk: nothing before this label
  std::uint64_t cursor_version_ = 0;  ///< of the labels it is one of
  NodeId cursor_node_;                ///< the first node that is not before it
  std::size_t rewrites_ = 0, limit_ = 0, rewrites_at_release_ = 0, rewrites_at_retry_ = 0;
  bool force_ =
      false;  ///< take the next match although it should wait: every remaining match waits
  bool once_ = false, walk_ = false;
  bool new_facts_ = false;  ///< a condition joined the facts, and no verdict has seen it
  bool careful_ = false;    ///< only legal matches are kept, not promising ones
  bool seeding_ = false;    ///< the heap is ordered after all matches are known
  bool counting_ = false;   ///< matches are counted, not kept
  std::size_t counted_ = 0;
  bool follow_erased_ = false;  ///< some rule depends on absent nodes, or on the number of nodes
  bool local_ = false;          ///< matches depend on their nodes, types and uses alone
  /// Detects cycles of rules, for which fuel and limits would be the only other end.
  LoopGuard guard_;
};

}  // namespace pw
