// Greedy, walk and once over the rules of one pass. Preparing rules, legality, replacing,
// requeueing and rules with lists are in engine_*.cpp.
//
// The problem: naive_driver.cpp defines the result. While there is a legal match that need not
// wait, the first in a total order is replaced. The naive driver finds all matches before each
// rewrite, which is quadratic. The engine must give the same sequence of rewrites at the cost of
// what each rewrite changes.
//
// The algorithm keeps the conflict set and matches again only around changes, without storing
// partial matches: TREAT (Miranker 1987). Rete (Forgy 1982) would keep partial matches too.
//
//   * Seeding runs the match program at every node once. Matches are kept as node ids: the first
//   ones
//     in a sorted list, later ones in a binary heap. Both are validated (rebind, legal) when taken.
//   * Rules whose matches begin at the first node that they replace are not seeded: one walk along
//     the graph meets each match at its turn (engine_sweep.cpp).
//   * After a rewrite, the anchors that the patterns reach from the touched nodes are matched again
//     (engine_requeue.cpp). A match refused for a path or a barrier waits at the nodes in its way;
//     one blocked by a larger or preferred match waits at the nodes of that match.
//   * If all rules of the pass depend on nodes, types and uses alone, and nothing waits, a node
//   need
//     not be touched if each new match that holds it also holds a new node (engine_replace.cpp).
//
// Invariants:
//
//   * A match that may be legal is in seeds_, heap_ or parked_, or its anchor is in waiters_ or
//     refused_, or ahead of the sweep. So an empty state means that no legal match exists.
//   * A stored position is at most the present one, since nodes move only to larger labels. A stale
//     entry therefore surfaces too early, and goes back with its new position. After labels were
//     spread, rekey() reads all positions again.
//   * An entry holds ids only. Nothing in it is trusted when it is dequeued, so that erased and
//   changed
//     nodes need no search for the entries that hold them.
//
// Cost: a rewrite costs the anchors it reaches and O(log n) for the heap. Seeding is linear in the
// graph for a bounded number of steps at each anchor.
#include "rewriter/engine/engine.hpp"

#include <algorithm>
#include <chrono>
#include <span>

#include <fmt/format.h>

#include "rewriter/engine/legality.hpp"
#include "rewriter/reference/naive_driver.hpp"

namespace pw {
namespace {

/// Sorts by insertion while elements move little, which is fast for a nearly sorted list.
template <class T, class Before>
void sort_nearly_sorted(std::vector<T>& items, const Before& before) {
  std::size_t moves = 0;
  const std::size_t most = items.size();
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (moves > most) return std::sort(items.begin(), items.end(), before);
    const T item = items[i];
    std::size_t at = i;
    for (; at > 0 && before(item, items[at - 1]); --at, ++moves) items[at] = items[at - 1];
    items[at] = item;
  }
}

}  // namespace

RuleEngine::RuleEngine(RunState& run, const Strategy& strategy, PassStats& stats)
    : run_(run),
      graph_(run.graph),
      strategy_(strategy),
      stats_(stats),
      constant_(run.graph.context().ops.find(Primitive::constant)) {
  once_ = strategy.kind == ast::Strategy::Kind::once;
  walk_ = strategy.kind == ast::Strategy::Kind::walk;
  careful_ = once_;  // a match that becomes legal later is not one of the input graph
  limit_ = 10'000 + run.options.limits.per_node * graph_.node_count();
  const OpTable& ops = graph_.context().ops;
  for (std::size_t op = 0; op < ops.size(); ++op) barrier_.push_back(is_barrier(ops[OpId(op)]));
}

/// Returns true if omitted rules must be compiled: variants of a recursive pattern, or rules for an
/// op that a rewrite has created. `once` uses the matches of the input graph alone.
bool RuleEngine::opens() const { return !once_ && (!frontiers_.empty() || expects_more_); }

/// Expands requested recursive patterns, then recompiles and reseeds, until none is requested.
void RuleEngine::start() {
  do {
    for (RuleId id : frontiers_) run_.rules.open(id, graph_.context_ptr());
    frontiers_.clear();
    expects_more_ = false;
    heap_.clear();
    seeds_.clear();
    parked_.clear();
    pool_.clear();
    latest_.clear();
    listed_.clear();
    queued_.clear();
    searches_.clear();
    waiters_.clear();
    finish_stats();
    rules_.clear();
    prepare();
    compile();
    seed();
  } while (!frontiers_.empty());
  note_first();
}

void RuleEngine::note_first() {
  first_.clear();
  if (!once_) return;
  for (const Entry& entry : seeds_) {
    if (rules_[entry.rule].lists)
      first_.insert(identity(entry.rule, all_nodes(listed_[entry.at].match)));
    else if (rebind(entry))
      first_.insert(identity(entry.rule, rules_[entry.rule].taken.nodes));
  }
}

/// Collects rules; an opened frontier is replaced by its variants.
void RuleEngine::collect(const std::vector<RuleId>& ids, std::vector<RuleId>& out) const {
  for (RuleId id : ids) {
    if (const std::vector<RuleId>* variants = run_.rules.variants(id))
      collect(*variants, out);
    else
      out.push_back(id);
  }
}

void RuleEngine::compile() {
  std::vector<const RuleLayout*> layouts;
  for (const Prepared& rule : rules_) layouts.push_back(&rule.layout());
  program_ = compile_program(run_.rules.set(), layouts, gather_statistics(graph_),
                             {careful_ ? Anchoring::cheapest : anchoring_of(strategy_.kind),
                              !run_.options.stats, expected_});
  for (std::size_t i = 0; i < rules_.size(); ++i) rules_[i].swept = program_.rules[i].from_first;
  registers_ = std::make_unique<Registers>(program_);
  if (run_.options.stats) trace_ = std::make_unique<CountingTrace>(program_);
  for (std::uint32_t i = 0; i < rules_.size(); ++i) note_registers(i);
}

void RuleEngine::tell(std::size_t done, std::size_t total, std::string_view unit) const {
  if (run_.options.progress) run_.options.progress(stats_.pass, done, total, unit);
}

/// Takes matches until a limit, fuel or a cycle stops the run, or nothing is left. Parked and
/// refused matches are examined only when nothing else is pending; if neither gives a match, the
/// graph is a fixpoint.
StopReason RuleEngine::run() {
  start();
  std::optional<StopReason> stop;
  const std::size_t found = heap_.size() + seeds_.size();
  for (std::size_t steps = 0; !stop; ++steps) {
    if (steps % kTold == 0 && !sweep_.valid()) tell(std::min(steps, found), found, "matches");
    stop = step();
    if (stop || opens() || new_facts_ || !heap_.empty() || !seeds_.empty() || sweep_.valid())
      continue;
    if (!release_parked() && !ask_refused_again()) stop = StopReason::fixpoint;
  }
  finish_stats();
  return *stop;
}

void RuleEngine::seed() {
  version_ = graph_.renumberings();
  std::uint8_t finds = MatchProgram::kNothing;
  for (std::uint8_t of_op : program_.finds) finds |= of_op;
  const bool any_swept = (finds & MatchProgram::kFromFirst) != 0;
  sweep_ = any_swept ? graph_.first() : NodeId();
  swept_nodes_ = sweep_told_ = 0;
  sweep_total_ = graph_.node_count();
  if ((finds & MatchProgram::kElsewhere) == 0) return;
  if (!counting_) {  // a generous bound; unused memory costs nothing
    pool_.reserve(2 * graph_.node_count());
    latest_.reserve(2 * graph_.node_bound());
    latest_.resize(graph_.node_bound(), kNoEntry);
    heap_.reserve(graph_.node_count() / 4);
  }
  seeding_ = true;
  if (any_swept)
    seed_beside_sweep();
  else
    seed_by_interpreter();
  seeding_ = false;
  // The list is nearly sorted and consumed in order, so a sorted list replaces a heap.
  seeds_ = std::move(heap_);
  heap_.clear();
  std::reverse(seeds_.begin(), seeds_.end());  // the first comes last
  sort_nearly_sorted(seeds_, Later{this});
}

/// Seeds by visiting the nodes whose op is the anchor of a rule that is not swept. Reports progress
/// every kTold nodes.
void RuleEngine::seed_by_interpreter() {
  std::size_t seen = 0;
  for (NodeId n = graph_.first(); n.valid(); seen += kTold) {
    tell(seen, graph_.node_count(), "nodes");
    for (std::size_t i = 0; i < kTold && n.valid(); ++i, n = graph_.next(n))
      if ((program_.finds_of(graph_.op(n)) & MatchProgram::kElsewhere) != 0) attempt(n);
  }
}

/// Matches all rules at one anchor under a budget of steps. Matches of ambiguous rules are
/// collected as choices and kept at the end, so that each set of nodes gives one entry.
void RuleEngine::attempt(NodeId anchor) {
  if (program_.entry_of(graph_.op(anchor)) == Instruction::kNowhere) return;
  choice_count_ = 0;
  if (!asked_.empty()) asked_.clear();
  StepBudget budget{steps_};
  if (trace_) {
    execute(program_, graph_, anchor, constant_, *registers_, *trace_, budget,
            [&](std::uint32_t rule) { return accept(rule, anchor); });
  } else {
    NoTrace none;
    execute(program_, graph_, anchor, constant_, *registers_, none, budget,
            [&](std::uint32_t rule) { return accept(rule, anchor); });
  }
  if (budget.stopped) give_up(*budget.stopped, anchor);
  if (choice_count_ > 0) finish_attempt(anchor);
}

/// Keeps the choices made at the anchor.
void RuleEngine::finish_attempt(NodeId anchor) {
  for (std::size_t i = 0; i < choice_count_; ++i) {
    Choice& choice = choices_[i];
    if (choice.waits) continue;
    if (!careful_ || choice.legal || legal(choice.rule, anchor, choice.best))
      push(choice.rule, anchor, choice.best, choice.verdict);
  }
}

/// Keeps the matches found before the budget was spent. Later anchors get half the budget, so that
/// many such anchors end soon.
void RuleEngine::give_up(std::uint32_t index, NodeId anchor) {
  run_.warn_given_up(rules_[index].ast(), graph_, anchor, steps_);
  steps_ = std::max(steps_ / 2, kLeastSteps);
}

/// Timer of one rule until the end of the scope; active with RewriteOptions::stats.
class RuleEngine::Timed {
 public:
  Timed(const RuleEngine& engine, RuleStats* stats)
      : stats_(engine.trace_ ? stats : nullptr), start_(now()) {}
  ~Timed() {
    if (stats_ != nullptr) stats_->seconds += std::chrono::duration<double>(now() - start_).count();
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] Clock::time_point now() const {
    return stats_ == nullptr ? Clock::time_point() : Clock::now();
  }
  RuleStats* stats_;
  Clock::time_point start_;
};

bool RuleEngine::accept_with_care(std::uint32_t index, NodeId anchor) {
  Prepared& rule = rules_[index];
  const Timed timed(*this, rule.stats);
  if (rule.stats != nullptr) ++rule.stats->hits;
  read_candidate(rule, rule.found);
  const bool frontier = rule.stats == nullptr;
  if (rule.ambiguous && !rule.lists && !frontier) return choose(index, anchor, rule.found);
  if (frontier)
    accept_frontier(index, rule.found);
  else if (rule.lists)
    accept_listed(index, anchor, rule.found);
  else if (promising(index, anchor, rule.found))
    push(index, anchor, rule.found, rule.verdicts->last());
  return false;
}

/// Requests the variants of a frontier that matches, for the next compilation.
void RuleEngine::accept_frontier(std::uint32_t index, const Candidate& c) {
  const Prepared& rule = rules_[index];
  if (std::find(frontiers_.begin(), frontiers_.end(), rule.layout().id) != frontiers_.end()) return;
  Search search(graph_, rule.layout(), rule.rule->base, false);
  search.look_for_frontiers();
  search.run_fixed(c.nodes, [&](const Match&) {
    frontiers_.push_back(rule.layout().id);
    return false;
  });
}

/// Keeps one match for each set of nodes: the first in the total order.
bool RuleEngine::choose(std::uint32_t index, NodeId anchor, const Candidate& c) {
  const auto same_set = [&](const Choice& known) {
    return known.rule == index &&
           std::is_permutation(c.nodes.begin(), c.nodes.end(), known.best.nodes.begin());
  };
  std::size_t at = 0;
  while (at < choice_count_ && !same_set(choices_[at])) ++at;
  if (at < choice_count_ && !comes_first(rules_[index], c, choices_[at].best)) return false;
  // A forbidden assignment leaves the set of nodes to other assignments. Which inner values may
  // have other users depends on the nodes' roles. If roles can change, the assignment must be legal
  // now.
  if (rules_[index].permutable ? fits(index, anchor, c) == nullptr : !promising(index, anchor, c))
    return false;
  add_choice(at, index).best = c;
  return true;
}

/// Returns true if the rule has a choice already, so that the next set of nodes may be the same
/// one.
bool RuleEngine::has_choice_of(std::uint32_t index) const {
  for (std::size_t i = 0; i < choice_count_; ++i)
    if (choices_[i].rule == index) return true;
  return false;
}

/// Returns choice number `at`, which may be one past the last.
RuleEngine::Choice& RuleEngine::add_choice(std::size_t at, std::uint32_t index) {
  if (at == choices_.size()) choices_.emplace_back();
  choice_count_ = std::max(choice_count_, at + 1);
  Choice& choice = choices_[at];
  const Candidate& like = rules_[index].found;
  if (choice.best.nodes.size() != like.nodes.size() ||
      choice.best.values.size() != like.values.size()) {
    choice.best.nodes.resize(like.nodes.size());
    choice.best.swaps.resize(like.swaps.size());
    choice.best.values.resize(like.values.size());
  }
  choice.rule = index;
  choice.verdict = rules_[index].verdicts->last();
  choice.legal = choice.waits = false;
  return choice;
}

/// Compares two assignments by position, which differs if a `given` node and a consumed one can be
/// exchanged. Then by the labels in pattern order, then by the operands as written.
bool RuleEngine::comes_first(const Prepared& rule, const Candidate& a, const Candidate& b) const {
  const std::uint64_t here = position_of(rule, a), there = position_of(rule, b);
  if (here != there) return here < there;
  for (std::size_t i = 0; i < a.nodes.size(); ++i)
    if (a.nodes[i] != b.nodes[i]) return graph_.label(a.nodes[i]) < graph_.label(b.nodes[i]);
  return a.swaps < b.swaps;
}

/// Adds a match to the pending ones. Leaves `c` in an unspecified state.
[[gnu::flatten]] void RuleEngine::push(std::uint32_t index, NodeId anchor, Candidate& c,
                                       std::uint32_t verdict) {
  if (counting_) return void(++counted_);
  if (!seeding_ && !counts(index, c.nodes)) return;
  if (walk_ ? is_behind(position_of(rules_[index], c))
            : !seeding_ && is_pending(index, anchor, c, verdict))
    return;
  sweeping_ ? offer(index, anchor, c, verdict) : push_entry(index, anchor, c, verdict);
}

/// Adds an entry to the heap. While seeding, the heap property is established once at the end.
[[gnu::flatten]] void RuleEngine::push_entry(std::uint32_t index, NodeId anchor, const Candidate& c,
                                             std::uint32_t verdict) {
  heap_.push_back(keep(index, anchor, c, verdict));
  if (!seeding_) std::push_heap(heap_.begin(), heap_.end(), Later{this});
}

/// Returns a mask of the nodes whose operands the match exchanges, for the first 32 pattern nodes.
std::uint32_t RuleEngine::swaps_of(const Candidate& c) {
  std::uint32_t swaps = 0;
  for (std::size_t i = 0; i < c.nodes.size(); ++i)
    if (c.swaps[i] != 0 && i < 32) swaps |= 1u << i;
  return swaps;
}

/// Stores a match as an entry that waits at its anchor.
[[gnu::flatten]] RuleEngine::Entry RuleEngine::keep(std::uint32_t index, NodeId anchor,
                                                    const Candidate& c, std::uint32_t verdict) {
  if (latest_.size() <= anchor.index) latest_.resize(graph_.node_bound() + 1024, kNoEntry);
  Entry entry;
  entry.position = position_of(rules_[index], c);
  entry.rule = index;
  entry.at = static_cast<std::uint32_t>(pool_.size);
  std::uint32_t* const out = pool_.add(kNodes + c.nodes.size());
  out[kRule] = index;
  out[kEarlier] = latest_[anchor.index];
  out[kAnchor] = anchor.index;
  out[kVerdict] = verdict;
  out[kSwaps] = swaps_of(c);
  for (std::size_t i = 0; i < c.nodes.size(); ++i) out[kNodes + i] = c.nodes[i].index;
  latest_[anchor.index] = entry.at;
  return entry;
}

/// Returns true if the same match is pending: a nearby rewrite caused its anchor to be matched
/// again. The pending position may be stale, which is detected when the entry is dequeued.
[[gnu::flatten]] bool RuleEngine::is_pending(std::uint32_t index, NodeId anchor, const Candidate& c,
                                             std::uint32_t verdict) const {
  if (latest_.size() <= anchor.index || latest_[anchor.index] == kNoEntry) return false;
  const std::uint32_t swaps = swaps_of(c);
  const auto equal = [&](const std::uint32_t* entry) {
    if (entry[kRule] != index || entry[kVerdict] != verdict || entry[kSwaps] != swaps) return false;
    for (std::size_t i = 0; i < c.nodes.size(); ++i)
      if (entry[kNodes + i] != c.nodes[i].index) return false;
    return true;
  };
  for (std::uint32_t at = latest_[anchor.index]; at != kNoEntry; at = pool_[at + kEarlier])
    if (equal(pool_.data() + at)) return true;
  return false;
}

/// Removes an entry from those that wait at its anchor.
void RuleEngine::forget(const Entry& entry) {
  if (rules_[entry.rule].lists) return;
  std::uint32_t* at = &latest_[pool_[entry.at + kAnchor]];
  while (*at != kNoEntry && *at != entry.at) at = &pool_[*at + kEarlier];
  if (*at == entry.at) *at = pool_[entry.at + kEarlier];
}

/// Adds an entry to those that wait at its anchor.
void RuleEngine::remember(const Entry& entry) {
  std::uint32_t& latest = latest_[pool_[entry.at + kAnchor]];
  pool_[entry.at + kEarlier] = latest;
  latest = entry.at;
}

/// Returns true if `a` comes after `b` at the same position: by rank, then by the labels of the
/// nodes in pattern order, then as written.
bool RuleEngine::breaks_tie(const Entry& a, const Entry& b) const {
  if (a.rule != b.rule) return a.rule > b.rule;
  if (rules_[a.rule].lists) return listed_later(a, b);
  const std::size_t count = rules_[a.rule].ast().nodes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const NodeId x{std::size_t{pool_[a.at + kNodes + i]}}, y{std::size_t{pool_[b.at + kNodes + i]}};
    if (x == y || !x.valid() || !y.valid()) continue;
    return graph_.label(x) > graph_.label(y);
  }
  return pool_[a.at + kSwaps] > pool_[b.at + kSwaps];
}

/// Reads all positions again after the labels changed; their order did not change.
void RuleEngine::rekey() {
  version_ = graph_.renumberings();
  heap_.insert(heap_.end(), seeds_.begin(), seeds_.end());
  seeds_.clear();
  std::vector<Entry> kept;
  for (Entry& entry : heap_) {
    if (rules_[entry.rule].lists) {
      kept.push_back(entry);  // rejected when it is dequeued
      continue;
    }
    forget(entry);
    if (!rebind(entry)) continue;
    remember(entry);
    entry.position = position_of(rules_[entry.rule], rules_[entry.rule].taken);
    kept.push_back(entry);
  }
  heap_ = std::move(kept);
  std::make_heap(heap_.begin(), heap_.end(), Later{this});
}

/// Removes and returns the earlier of the next seed and the top of the heap.
RuleEngine::Entry RuleEngine::next_entry() {
  const bool seed = heap_.empty() || (!seeds_.empty() && Later{this}(heap_.front(), seeds_.back()));
  if (!seed) std::pop_heap(heap_.begin(), heap_.end(), Later{this});
  std::vector<Entry>& from = seed ? seeds_ : heap_;
  const Entry out = from.back();
  from.pop_back();
  return out;
}

/// Makes one step: starts again if facts or rules changed, and takes the first match of the sweep
/// or of the entries, whichever precedes. An entry that turns out to be invalid is dropped, which
/// is a step as well.
std::optional<StopReason> RuleEngine::step() {
  if (new_facts_) ask_under_new_facts();
  if (opens()) start();
  if (version_ != graph_.renumberings()) rekey();
  if (sweep_.valid())
    if (const std::uint64_t until = next_position(); graph_.label(sweep_) <= until)
      return sweep_on(until);
  if (heap_.empty() && seeds_.empty()) return std::nullopt;
  const Entry entry = next_entry();
  return rules_[entry.rule].lists ? take_listed(entry) : take(entry);
}

/// Adds the conditions of a match to the run. A condition that changes the facts requires new
/// verdicts.
void RuleEngine::note_conditions(const std::vector<Condition>& conditions) {
  for (const Condition& condition : conditions)
    new_facts_ = run_.note_condition(condition) || new_facts_;
}

/// Starts again under new facts. A condition that became a fact may prove the guard of a refused
/// match, or refute that of a pending one. This happens a few times a run, so everything is matched
/// again.
void RuleEngine::ask_under_new_facts() {
  new_facts_ = false;
  if (!once_) return start();
  for (Prepared& rule : rules_)
    rule.verdicts = std::make_unique<Verdicts>(graph_, rule.layout(), rule.rule->base);
}

/// Takes an entry if it is still valid: the walk must not have passed it, its nodes must match, and
/// its position must be current.
std::optional<StopReason> RuleEngine::take(const Entry& entry) {
  forget(entry);
  if (is_behind(entry.position)) return std::nullopt;
  if (!rebind(entry)) return std::nullopt;
  const Prepared& rule = rules_[entry.rule];
  // Moving nodes only makes labels larger, so a stale position is too small and is detected here.
  if (const std::uint64_t now = position_of(rule, rule.taken); now != entry.position) {
    heap_.push_back(entry);
    heap_.back().position = now;
    std::push_heap(heap_.begin(), heap_.end(), Later{this});
    remember(entry);
    return std::nullopt;
  }
  return take_found(entry.rule, anchor_of_entry(entry), pool_[entry.at + kVerdict], &entry);
}

/// Takes the match in `taken` of its rule: an entry's match, or one that the sweep has reached.
std::optional<StopReason> RuleEngine::take_found(std::uint32_t index, NodeId anchor,
                                                 std::uint32_t number, const Entry* entry) {
  Prepared& rule = rules_[index];
  const Candidate& taken = rule.taken;
  const Timed timed(*this, rule.stats);
  const Verdict* known = rule.lasting ? &rule.verdicts->number(number) : nullptr;
  const Verdict* verdict = legal(index, anchor, taken, known);
  if (verdict == nullptr) return std::nullopt;
  const bool in_place = in_place_;
  if (!force_ && !rule.above.empty()) {
    own_.clear();
    for (PatternNodeId id : rule.layout().own) own_.push_back(taken.nodes[id.index]);
    if (blocked(index, anchor)) {
      if (entry == nullptr) {
        parked_.push_back(keep(index, anchor, taken, number));
        forget(parked_.back());
      } else {
        parked_.push_back(*entry);
      }
      return std::nullopt;
    }
  }
  if (run_.out_of_fuel()) return StopReason::fuel;
  if (rewrites_ >= limit_ || run_.rewrites >= run_.options.limits.rewrites)
    return StopReason::limit;
  note_conditions(verdict->conditions);
  if (run_.watch != nullptr) run_.watch->rewriting(rule.layout().id, taken.nodes, run_);
  graph_.set_mark(sweep_);
  replace(index, taken, verdict->recipe, in_place);
  sweep_ = graph_.mark();
  return after_rewrite(index);
}

/// Updates counters, the watch and the loop guard after a rewrite of either kind, and requeues
/// anchors.
std::optional<StopReason> RuleEngine::after_rewrite(std::uint32_t index) {
  Prepared& rule = rules_[index];
  force_ = false;
  if (follow_erased_)  // otherwise no rule has its own search
    for (const std::unique_ptr<Search>& search : searches_)
      if (search) search->graph_changed();
  ++rewrites_;
  ++stats_.rewrites;
  ++rule.stats->matches;
  run_.count_rewrite();
  if (walk_) move_cursor();
  for (NodeId n : created_) {
    if (!program_.awaits_op(graph_.op(n))) continue;
    expects_more_ = expected_.insert(graph_.op(n)).second || expects_more_;
  }
  requeue();
  if (run_.watch != nullptr) run_.watch->rewrote(strategy_, run_);
  const std::vector<RuleId> cycle = guard_.after(graph_, rule.layout().id, own_, created_);
  if (cycle.empty()) return std::nullopt;
  Diagnostic warning = error_at(strategy_.span, "PW1103",
                                fmt::format("the rules {} rewrite each other's results endlessly",
                                            describe_cycle(run_.rules, cycle)),
                                "make one of them stricter, or remove one from the pass");
  warning.severity = Severity::warning;
  for (RuleId r : cycle)
    warning.secondary.push_back({run_.rules[r].name_span, "part of the cycle"});
  run_.report.warnings.push_back(std::move(warning));
  return StopReason::cycle;
}

/// Moves the cursor to the place of the first replaced node, so that new nodes after that place are
/// ahead of the walk.
void RuleEngine::move_cursor() {
  const NodeId front = first_of(graph_, own_);
  cursor_ = graph_.label(front);
  cursor_version_ = graph_.renumberings();
  cursor_node_ = graph_.next(front);  // a dead node still has its successor
  while (cursor_node_.valid() && !graph_.alive(cursor_node_))
    cursor_node_ = graph_.next(cursor_node_);
}

/// Returns true if the walk has passed the position. A match that was tried and undone may have
/// changed labels.
bool RuleEngine::is_behind(std::uint64_t position) {
  if (!walk_) return false;
  if (rewrites_ > 0 && cursor_version_ != graph_.renumberings()) {
    cursor_version_ = graph_.renumberings();
    cursor_ = cursor_node_.valid() ? graph_.label(cursor_node_) : ~std::uint64_t{0};
  }
  return position < cursor_;
}

/// Checks parked matches again when nothing else is pending, since their blockers may have
/// disappeared unnoticed. If they block each other in a cycle, the first of them is applied.
bool RuleEngine::release_parked() {
  if (parked_.empty()) return false;
  force_ = rewrites_ == rewrites_at_release_;
  rewrites_at_release_ = rewrites_;
  heap_.insert(heap_.end(), parked_.begin(), parked_.end());
  parked_.clear();
  version_ = graph_.renumberings() - 1;  // their positions may be stale
  rekey();
  return !heap_.empty();
}

/// Matches refused anchors again: a path or a barrier that blocked a match may have disappeared
/// although no node of the match was touched.
bool RuleEngine::ask_refused_again() {
  if (walk_ || refused_.empty() || rewrites_ == rewrites_at_retry_) return false;
  rewrites_at_retry_ = rewrites_;
  std::vector<NodeId> again = std::move(refused_);
  refused_.clear();
  sort_once(again);
  for (NodeId n : again)
    if (graph_.alive(n)) attempt(n);
  return !heap_.empty();
}

/// Adds the counters of the match program to the statistics of the rules.
void RuleEngine::finish_stats() {
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    Prepared& rule = rules_[i];
    if (rule.stats == nullptr) continue;
    for (std::size_t code = 0; code < kNearMissCodes.size(); ++code)
      if (rule.rejections[code] > 0)
        rule.stats->rejections[std::string(kNearMissCodes[code].code)] += rule.rejections[code];
    if (!trace_ || program_.rules[i].path.empty()) continue;
    rule.stats->attempts += trace_->asks[program_.rules[i].path.front()];
    for (std::uint32_t pc : program_.rules[i].path)
      if (trace_->fails[pc] > 0 && *program_.origins[pc].reason != '\0')
        rule.stats->rejections[program_.origins[pc].reason] += trace_->fails[pc];
  }
}

StopReason run_rules(RunState& run, const Strategy& strategy, PassStats& stats) {
  if (run.options.engine == EngineKind::naive) return run_rules_naive(run, strategy, stats);
  return RuleEngine(run, strategy, stats).run();
}

}  // namespace pw
