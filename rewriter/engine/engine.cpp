// Greedy, walk and once over the rules of one pass. Its parts are in pass/: PassRule (what is
// derived from a rule), MatchFinder and ListFinder (matching), Legality as pure functions,
// Refusals, MatchQueue, Sweep, Blockers, Replacer (match in, delta out), Requeue (delta in, anchors
// out).
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
//     ones in a sorted list, later ones in a binary heap. Both are validated when taken.
//   * Rules whose matches begin at the first node that they replace are not seeded: one walk along
//     the graph meets each match at its turn (sweep.cpp).
//   * After a rewrite, the anchors that the patterns reach from the touched nodes are matched again
//     (requeue.cpp). A match refused for a path or a barrier waits at the nodes in its way;
//     one blocked by a larger or preferred match waits at the nodes of that match.
//   * If all rules of the pass depend on nodes, types and uses alone, and nothing waits, a node
//     need not be touched if each new match that holds it also holds a new node (replacer.cpp).
//
// Invariants:
//
//   * A match that may be legal is in the queue, or its anchor is among the Refusals, or ahead of
//     the sweep. So an empty state means that no legal match exists.
//   * An entry holds ids only. Nothing in it is trusted when it is dequeued, so that erased and
//     changed nodes need no search for the entries that hold them (match_queue.hpp).
//
// Cost: a rewrite costs the anchors it reaches and O(log n) for the heap. Seeding is linear in the
// graph for a bounded number of steps at each anchor.
#include "rewriter/engine/engine.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/reference/naive_driver.hpp"

namespace pw {
namespace {

constexpr std::size_t kProgressStep = 4096;  // nodes or matches between two progress reports

bool is_local(const PassRule& rule) {
  return rule.memo && !rule.lists && !rule.ast().frontier && !rule.verdicts->reads_numbers();
}

}  // namespace

RuleEngine::RuleEngine(RunState& run, const Strategy& strategy, PassStats& stats)
    : pass_(run, strategy, stats),
      run_(run),
      graph_(run.graph),
      refusals_(run),
      queue_(pass_),
      lists_(pass_, queue_, refusals_),
      sweep_(pass_, queue_),
      finder_(pass_, queue_, refusals_, lists_, sweep_),
      requeue_(pass_, refusals_),
      blockers_(pass_, requeue_, refusals_, lists_),
      replacer_(run, requeue_),
      limit_(10'000 + run.options.limits.per_node * graph_.node_count()) {}

/// Returns true if omitted rules must be compiled: variants of a recursive pattern, or rules for an
/// op that a rewrite has created. `once` uses the matches of the input graph alone.
bool RuleEngine::opens() const { return !pass_.once && (finder_.any_frontiers() || expects_more_); }

/// Expands requested recursive patterns, then recompiles and reseeds, until none is requested.
void RuleEngine::start() {
  do {
    for (RuleId id : finder_.take_frontiers()) run_.rules.open(id, graph_.context_ptr());
    expects_more_ = false;
    queue_.clear();
    lists_.clear();
    refusals_.clear_waiting();
    finish_stats();
    compile();
    seed();
  } while (finder_.any_frontiers());
  note_first();
}

void RuleEngine::note_first() {
  pass_.first.clear();
  if (!pass_.once) return;
  for (const MatchQueue::Entry& entry : queue_.seeds()) {
    const PassRule& rule = pass_.rules[entry.rule];
    if (rule.lists)
      pass_.first.insert(PassState::key(entry.rule, all_nodes(queue_.listed(entry).match)));
    else if (queue_.bind(entry))
      pass_.first.insert(PassState::key(entry.rule, rule.taken.nodes));
  }
}

void RuleEngine::compile() {
  std::vector<PassRule>& rules = pass_.rules;
  rules = prepare_rules(run_, pass_.strategy, pass_.stats);
  pass_.local =
      !pass_.once && !pass_.cursor.active() && std::all_of(rules.begin(), rules.end(), is_local);
  pass_.any_lists = pass_.any_lists || std::any_of(rules.begin(), rules.end(),
                                                   [](const PassRule& rule) { return rule.lists; });
  std::vector<const RuleLayout*> layouts;
  for (const PassRule& rule : rules) layouts.push_back(&rule.layout());
  const Anchoring anchoring =
      pass_.careful ? Anchoring::cheapest : anchoring_of(pass_.strategy.kind);
  pass_.program = compile_program(run_.rules.set(), layouts, gather_statistics(graph_),
                                  {anchoring, !run_.options.stats, expected_});
  pass_.registers = std::make_unique<Registers>(pass_.program);
  if (run_.options.stats) pass_.trace = std::make_unique<CountingTrace>(pass_.program);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules[i].swept = pass_.program.rules[i].from_first;
    map_registers(rules[i], pass_.program.rules[i], *pass_.registers, !run_.options.stats,
                  pass_.cursor.active());
  }
}

void RuleEngine::report_progress(std::size_t done, std::size_t total, std::string_view unit) const {
  if (run_.options.progress) run_.options.progress(pass_.stats.pass, done, total, unit);
}

void RuleEngine::ready() {
  pass_.careful = true;
  compile();
}

std::size_t RuleEngine::scan() {
  queue_.clear();
  refusals_.clear();
  finder_.count(true);
  seed();
  if (!finder_.any_frontiers()) return finder_.counted() + queue_.size();  // those with lists
  finder_.count(false);
  start();
  return queue_.size();
}

/// Takes matches until a limit, fuel or a cycle stops the run, or nothing is left. Parked and
/// refused matches are examined only when nothing else is pending; if neither gives a match, the
/// graph is a fixpoint.
StopReason RuleEngine::run() {
  start();
  std::optional<StopReason> stop;
  const std::size_t found = queue_.size();
  for (std::size_t steps = 0; !stop; ++steps) {
    if (steps % kProgressStep == 0 && !sweep_.goes_on())
      report_progress(std::min(steps, found), found, "matches");
    stop = step();
    if (stop || opens() || new_facts_ || !queue_.empty() || sweep_.goes_on()) continue;
    if (!release_parked() && !ask_refused_again()) stop = StopReason::fixpoint;
  }
  finish_stats();
  return *stop;
}

void RuleEngine::seed() {
  std::uint8_t finds = MatchProgram::kNothing;
  for (std::uint8_t of_op : pass_.program.finds) finds |= of_op;
  const bool any_swept = (finds & MatchProgram::kFromFirst) != 0;
  sweep_.start(any_swept ? graph_.first() : NodeId());
  sweep_reported_ = 0;
  sweep_total_ = graph_.node_count();
  if ((finds & MatchProgram::kElsewhere) == 0) return;
  if (!finder_.counting()) queue_.reserve_seeds();
  queue_.begin_seeding();
  any_swept ? seed_beside_sweep() : seed_along_order();
  queue_.end_seeding();
}

/// Seeds by visiting the nodes whose op is the anchor of a rule that is not swept. Reports progress
/// every kProgressStep nodes.
void RuleEngine::seed_along_order() {
  std::size_t seen = 0;
  for (NodeId n = graph_.first(); n.valid(); seen += kProgressStep) {
    report_progress(seen, graph_.node_count(), "nodes");
    for (std::size_t i = 0; i < kProgressStep && n.valid(); ++i, n = graph_.next(n))
      if ((pass_.program.finds_of(graph_.op(n)) & MatchProgram::kElsewhere) != 0)
        finder_.attempt(n);
  }
}

/// Seeds the rules that are not swept. Their anchors are few, so that only the ops of other nodes
/// are read.
void RuleEngine::seed_beside_sweep() {
  for (std::size_t i = 0; i < graph_.node_bound(); ++i) {
    const NodeId node(i);
    if (i % kProgressStep == 0) report_progress(i, graph_.node_bound(), "nodes");
    if ((pass_.program.finds_of(graph_.op(node)) & MatchProgram::kElsewhere) != 0 &&
        graph_.alive(node))
      finder_.attempt(node);
  }
}

/// Makes one step: starts again if facts or rules changed, and takes the first match of the sweep
/// or of the queue, whichever precedes. An entry that turns out to be invalid is dropped, which is
/// a step as well.
std::optional<StopReason> RuleEngine::step() {
  if (new_facts_) ask_under_new_facts();
  if (opens()) start();
  queue_.refresh();
  if (sweep_.goes_on())
    if (const std::uint64_t until = queue_.next_position(); sweep_.goes_on(until))
      return sweep_on(until);
  if (queue_.empty()) return std::nullopt;
  const MatchQueue::Entry entry = queue_.next();
  return pass_.rules[entry.rule].lists ? take_listed(entry) : take(entry);
}

/// Walks to the next anchor with a match, at most to the position of the first entry, and takes the
/// match.
std::optional<StopReason> RuleEngine::sweep_on(std::uint64_t until) {
  while (sweep_.goes_on(until) && !sweep_.any_offer()) {
    if (sweep_reported_ <= sweep_.visited()) {
      report_progress(std::min(sweep_.visited(), sweep_total_), sweep_total_, "nodes");
      sweep_reported_ += kProgressStep;
    }
    sweep_.visit(kProgressStep, until, [&](NodeId n) { finder_.attempt(n); });
  }
  const std::optional<Sweep::Offer> offer = sweep_.take_offer(until);
  if (!offer) return std::nullopt;
  return take_found(offer->rule, offer->anchor, offer->verdict, nullptr);
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
  if (!pass_.once) return start();
  for (PassRule& rule : pass_.rules)
    rule.verdicts = std::make_unique<Verdicts>(graph_, rule.layout(), rule.rule->base);
}

/// Takes an entry if it is still valid: the walk must not have passed it, its nodes must match, and
/// its position must be current.
std::optional<StopReason> RuleEngine::take(const MatchQueue::Entry& entry) {
  if (pass_.cursor.passed(entry.position) || !queue_.bind(entry)) return std::nullopt;
  const PassRule& rule = pass_.rules[entry.rule];
  // Moving nodes only makes labels larger, so a stale position is too small and is detected here.
  if (const std::uint64_t now = position_of(graph_, rule, rule.taken); now != entry.position)
    return queue_.put_back(entry, now), std::nullopt;
  return take_found(entry.rule, queue_.anchor_of(entry), queue_.verdict_of(entry), &entry);
}

/// Takes the match in `taken` of its rule: an entry's match, or one that the sweep has reached.
std::optional<StopReason> RuleEngine::take_found(std::uint32_t index, NodeId anchor,
                                                 std::uint32_t number,
                                                 const MatchQueue::Entry* entry) {
  PassRule& rule = pass_.rules[index];
  const Candidate& taken = rule.taken;
  const RuleTimer timer(pass_, rule.stats);
  const Verdict* known = rule.lasting ? &rule.verdicts->number(number) : nullptr;
  const GateResult outcome = judge(graph_, run_.barriers, rule, taken, known);
  const Verdict* verdict = refusals_.settle(rule, anchor, outcome);
  if (verdict == nullptr) return std::nullopt;
  if (!force_ && !rule.above.empty()) {
    own_.clear();
    for (PatternNodeId id : rule.layout().own) own_.push_back(taken.nodes[id.index]);
    if (must_wait(index, anchor, own_)) {
      entry != nullptr ? queue_.park(*entry) : queue_.park(index, anchor, taken, number);
      return std::nullopt;
    }
  }
  if (const std::optional<StopReason> stop = used_up()) return stop;
  note_conditions(verdict->conditions);
  if (run_.watch != nullptr) run_.watch->rewriting(rule.layout().id, taken.nodes, run_);
  sweep_.begin_rewrite();
  const Delta& delta = replacer_.replace(rule, taken, verdict->recipe, outcome.in_place);
  sweep_.end_rewrite();
  return after_rewrite(index, delta);
}

/// Takes an entry of a rule with lists: searches for the match again, checks whether it is blocked,
/// and applies it.
std::optional<StopReason> RuleEngine::take_listed(const MatchQueue::Entry& entry) {
  if (pass_.cursor.passed(entry.position)) return std::nullopt;
  const std::optional<Match> match = lists_.find_again(entry);
  if (!match) return std::nullopt;
  const NodeId anchor = queue_.anchor_of(entry);
  const PassRule& rule = pass_.rules[entry.rule];
  std::vector<NodeId> own = own_nodes(graph_, rule.layout(), *match);
  if (const std::uint64_t now = graph_.label(own.front()); now != entry.position)
    return queue_.put_back(entry, now), std::nullopt;
  if (!force_ && !rule.above.empty() && must_wait(entry.rule, anchor, own))
    return queue_.park(entry), std::nullopt;
  if (const std::optional<StopReason> stop = used_up()) return stop;
  return apply_listed(entry.rule, anchor, *match, std::move(own));
}

/// Applies a match of lists. A right side that cannot be built is an error of the rule.
std::optional<StopReason> RuleEngine::apply_listed(std::uint32_t index, NodeId anchor,
                                                   const Match& match, std::vector<NodeId> own) {
  PassRule& rule = pass_.rules[index];
  if (run_.watch != nullptr) run_.watch->rewriting(rule.layout().id, all_nodes(match), run_);
  sweep_.begin_rewrite();
  Result<Applied> applied = apply(graph_, rule.layout(), match, run_.barriers);
  lists_.graph_changed();
  if (!applied) {
    const std::string& code = applied.error().front().code;
    if (code.starts_with("N")) rule.reject(code.c_str());
    if (code == "N13" || code == "N14") refusals_.keep(anchor);
    if (code.starts_with("PW")) run_.warn_refused(rule.ast(), graph_, anchor, applied.error());
    return std::nullopt;
  }
  sweep_.end_rewrite();
  if (!applied->changed) return std::nullopt;
  note_conditions(match.conditions);
  const MatchEvent& event = applied->event;
  for (NodeId n : event.created) run_.barriers = run_.barriers || is_barrier(graph_.op_of(n));
  run_.report.journal.add(event);
  return after_rewrite(index,
                       {std::move(own), event.created, event.erased, std::move(applied->touched)});
}

/// Returns true if a match must wait for another one; its anchor then waits at the other's nodes.
bool RuleEngine::must_wait(std::uint32_t rule, NodeId anchor, const std::vector<NodeId>& own) {
  const std::vector<NodeId> blocker = blockers_.blocker_of(rule, own);
  for (NodeId n : blocker) refusals_.wait_for(n, anchor);
  return !blocker.empty();
}

/// Returns the reason if no rewrite is left to the pass or to the run.
std::optional<StopReason> RuleEngine::used_up() const {
  if (run_.out_of_fuel()) return StopReason::fuel;
  if (rewrites_ >= limit_ || run_.rewrites >= run_.options.limits.rewrites)
    return StopReason::limit;
  return std::nullopt;
}

/// Updates counters, the watch and the loop guard after a rewrite of either kind, and matches the
/// anchors again that it may affect. Anchors that the sweep will reach are left to it.
std::optional<StopReason> RuleEngine::after_rewrite(std::uint32_t index, const Delta& delta) {
  force_ = false;
  if (pass_.any_lists) lists_.graph_changed();  // otherwise no rule has its own search
  ++rewrites_;
  ++pass_.stats.rewrites;
  ++pass_.rules[index].stats->matches;
  run_.count_rewrite();
  if (pass_.cursor.active()) pass_.cursor.move_to(first_of(graph_, delta.own));
  for (NodeId n : delta.created) {
    if (!pass_.program.awaits_op(graph_.op(n))) continue;
    expects_more_ = expected_.insert(graph_.op(n)).second || expects_more_;
  }
  for (NodeId n : requeue_.anchors_after(delta))
    if (!sweep_.comes_to(n)) finder_.attempt(n);
  if (run_.watch != nullptr) run_.watch->rewrote(pass_.strategy, run_);
  return find_cycle(index, delta);
}

std::optional<StopReason> RuleEngine::find_cycle(std::uint32_t index, const Delta& delta) {
  const std::vector<RuleId> cycle =
      guard_.after(graph_, pass_.rules[index].layout().id, delta.own, delta.created);
  if (cycle.empty()) return std::nullopt;
  Diagnostic warning = error_at(pass_.strategy.span, "PW1103",
                                fmt::format("the rules {} rewrite each other's results endlessly",
                                            describe_cycle(run_.rules, cycle)),
                                "make one of them stricter, or remove one from the pass");
  warning.severity = Severity::warning;
  for (RuleId r : cycle)
    warning.secondary.push_back({run_.rules[r].name_span, "part of the cycle"});
  run_.report.warnings.push_back(std::move(warning));
  return StopReason::cycle;
}

/// Checks parked matches again when nothing else is pending, since their blockers may have
/// disappeared unnoticed. If they block each other in a cycle, the first of them is applied.
/// Returns false if none was parked.
bool RuleEngine::release_parked() {
  if (!queue_.any_parked()) return false;
  force_ = rewrites_ == rewrites_at_release_;
  rewrites_at_release_ = rewrites_;
  queue_.release_parked();
  return !queue_.empty();
}

/// Matches refused anchors again: a path or a barrier that blocked a match may have disappeared
/// although no node of the match was touched.
bool RuleEngine::ask_refused_again() {
  if (pass_.cursor.active() || !refusals_.any_kept() || rewrites_ == rewrites_at_retry_)
    return false;
  rewrites_at_retry_ = rewrites_;
  std::vector<NodeId> again = refusals_.take_kept();
  Requeue::sort_once(again);
  for (NodeId n : again)
    if (graph_.alive(n)) finder_.attempt(n);
  return !queue_.empty();
}

/// Adds the counters of the match program to the statistics of the rules.
void RuleEngine::finish_stats() {
  const CountingTrace* const trace = pass_.trace.get();
  for (std::size_t i = 0; i < pass_.rules.size(); ++i) {
    const PassRule& rule = pass_.rules[i];
    if (rule.stats == nullptr) continue;
    for (std::size_t code = 0; code < kNearMissCodes.size(); ++code)
      if (rule.rejections[code] > 0)
        rule.stats->rejections[std::string(kNearMissCodes[code].code)] += rule.rejections[code];
    const std::vector<std::uint32_t>& path = pass_.program.rules[i].path;
    if (trace == nullptr || path.empty()) continue;
    rule.stats->attempts += trace->executions[path.front()];
    for (std::uint32_t pc : path)
      if (trace->fails[pc] > 0 && *pass_.program.origins[pc].reason != '\0')
        rule.stats->rejections[pass_.program.origins[pc].reason] += trace->fails[pc];
  }
}

StopReason run_rules(RunState& run, const Strategy& strategy, PassStats& stats) {
  if (run.options.engine == EngineKind::naive) return run_rules_naive(run, strategy, stats);
  return RuleEngine(run, strategy, stats).run();
}

}  // namespace pw
