// Matching at one anchor.
//
// The problem: the program reports every structural match, and most of them repeat. A candidate
// should be built, and its gates evaluated, only for matches that are new and may be legal. The
// quick gates (pass_gates) are fast versions of those of candidate_legality.cpp on the registers of
// the program. They decide most matches: values have as many uses as in the pattern, what is read
// precedes what is written, and types and attributes repeat those of the match that followed the
// previous one last time. In any other case the answer is `unknown`, and the full gates decide.
//
// Invariants: an answer of the quick gates other than `unknown` equals that of the full gates. Each
// set of nodes gives one entry, in its first assignment: matches of ambiguous rules are collected
// as choices until the program has ended. Cost: bounded by the budget of steps at an anchor.
#include "rewriter/engine/pass/match_finder.hpp"

#include <algorithm>

namespace pw {
namespace {

constexpr std::uint64_t kLeastSteps = std::uint64_t{1} << 14;

}  // namespace

/// Matches all rules at one anchor under a budget of steps. Matches of ambiguous rules are
/// collected as choices and kept at the end, so that each set of nodes gives one entry.
void MatchFinder::attempt(NodeId anchor) {
  if (pass_.program.entry_of(graph_.op(anchor)) == Instruction::kNowhere) return;
  choice_count_ = 0;
  lists_.begin_anchor();
  StepBudget budget{pass_.steps};
  if (pass_.trace) {
    execute(pass_.program, graph_, anchor, pass_.constant, *pass_.registers, *pass_.trace, budget,
            [&](std::uint32_t rule) { return accept(rule, anchor); });
  } else {
    NoTrace none;
    execute(pass_.program, graph_, anchor, pass_.constant, *pass_.registers, none, budget,
            [&](std::uint32_t rule) { return accept(rule, anchor); });
  }
  if (budget.stopped) give_up(*budget.stopped, anchor);
  if (choice_count_ > 0) keep_choices(anchor);
}

/// Keeps the choices made at the anchor.
void MatchFinder::keep_choices(NodeId anchor) {
  for (std::size_t i = 0; i < choice_count_; ++i) {
    Choice& choice = choices_[i];
    if (choice.waits) continue;
    PassRule& rule = pass_.rules[choice.rule];
    if (!pass_.careful || choice.legal ||
        refusals_.settle(rule, anchor, judge(graph_, pass_.run.barriers, rule, choice.best)))
      push(choice.rule, anchor, choice.best, choice.verdict);
  }
}

/// Keeps the matches found before the budget was spent. Later anchors get half the budget, so that
/// many such anchors end soon.
void MatchFinder::give_up(std::uint32_t index, NodeId anchor) {
  pass_.run.warn_given_up(pass_.rules[index].ast(), graph_, anchor, pass_.steps);
  pass_.steps = std::max(pass_.steps / 2, kLeastSteps);
}

[[gnu::always_inline]] inline MatchFinder::Gate MatchFinder::pass_gates(PassRule& rule) {
  if (pass_.careful && pass_.run.barriers) return Gate::unknown;
  const PassRule::Reading& reading = rule.reading;
  const Registers& registers = *pass_.registers;
  const Guess kind =
      rule.verdicts->guess(reading.places, registers.values.data(), registers.nodes.data());
  if (kind == Guess::unknown) return Gate::unknown;
  if (kind == Guess::no) return Gate::no;  // independent of its place
  if ((pass_.careful || rule.permutable) &&
      surely_legal(graph_, reading.ends, rule.always_convex, registers.nodes.data(),
                   registers.values.data()) == Surely::not_known)
    return Gate::unknown;
  return pass_.careful && kind == Guess::yes_perhaps ? Gate::unknown : Gate::yes;
}

/// Accepts a structural match. Returns true if the same nodes with exchanged operands need not be
/// tried.
bool MatchFinder::accept(std::uint32_t index, NodeId anchor) {
  PassRule& rule = pass_.rules[index];
  if (rule.swept ? queue_.seeding() : sweep_.matching()) return false;
  if (!rule.simple || (rule.compares && has_choice_of(index)))
    return accept_with_care(index, anchor);
  const bool known = rule.settled && !queue_.seeding() && queue_.holds_registers(index, anchor);
  const Gate gate = known ? Gate::yes : pass_gates(rule);
  if (gate == Gate::unknown) return accept_with_care(index, anchor);
  ++rule.stats->hits;
  if (gate == Gate::no) return rule.reject(rule.verdicts->number(rule.verdicts->last()));
  if (rule.compares) {
    Choice& choice = add_choice(choice_count_, index);
    choice.legal = true;
    choice.waits = known;
    read_candidate(graph_, *pass_.registers, rule, choice.best);
    return true;
  }
  if (counting_) {
    ++counted_;
  } else if (sweep_.matching() && rule.settled && !known && !sweep_.any_offer()) {
    read_candidate(graph_, *pass_.registers, rule, rule.taken);  // as push() and offer() leave it
    sweep_.note_offer(index, rule.verdicts->last());
  } else if (!known) {
    read_candidate(graph_, *pass_.registers, rule, rule.found);
    push(index, anchor, rule.found, rule.verdicts->last());
  }
  return rule.ambiguous;
}

bool MatchFinder::accept_with_care(std::uint32_t index, NodeId anchor) {
  PassRule& rule = pass_.rules[index];
  const RuleTimer timer(pass_, rule.stats);
  if (rule.stats != nullptr) ++rule.stats->hits;
  read_candidate(graph_, *pass_.registers, rule, rule.found);
  const bool frontier = rule.stats == nullptr;
  if (rule.ambiguous && !rule.lists && !frontier) return choose(index, anchor, rule.found);
  if (frontier)
    accept_frontier(rule);
  else if (rule.lists)
    lists_.accept(index, anchor, rule.found);
  else if (promising(rule, anchor, rule.found))
    push(index, anchor, rule.found, rule.verdicts->last());
  return false;
}

/// Returns true if a match is worth keeping. A verdict in the guard cache decides alone; without
/// one, closedness and convexity are checked too. All gates run again when it is dequeued.
bool MatchFinder::promising(PassRule& rule, NodeId anchor, const Candidate& c) {
  const Verdict* known = rule.memo && !pass_.careful ? rule.verdicts->known(c) : nullptr;
  if (known != nullptr) return known->yes() || rule.reject(*known);
  const GateResult outcome = pass_.careful && !rule.ambiguous
                                 ? judge(graph_, pass_.run.barriers, rule, c)
                                 : judge_fit(graph_, rule, c);
  return refusals_.settle(rule, anchor, outcome) != nullptr;
}

/// Requests the variants of a frontier that matches, for the next compilation.
void MatchFinder::accept_frontier(const PassRule& rule) {
  if (std::find(frontiers_.begin(), frontiers_.end(), rule.layout().id) != frontiers_.end()) return;
  Search search(graph_, rule.layout(), rule.rule->base, false);
  search.look_for_frontiers();
  search.run_fixed(rule.found.nodes, [&](const Match&) {
    frontiers_.push_back(rule.layout().id);
    return false;
  });
}

/// Keeps one match for each set of nodes: the first in the total order.
bool MatchFinder::choose(std::uint32_t index, NodeId anchor, const Candidate& c) {
  PassRule& rule = pass_.rules[index];
  const auto same_set = [&](const Choice& known) {
    return known.rule == index &&
           std::is_permutation(c.nodes.begin(), c.nodes.end(), known.best.nodes.begin());
  };
  std::size_t at = 0;
  while (at < choice_count_ && !same_set(choices_[at])) ++at;
  if (at < choice_count_ && !precedes(rule, c, choices_[at].best)) return false;
  // A forbidden assignment leaves the set of nodes to other assignments. Which inner values may
  // have other users depends on the nodes' roles. If roles can change, the assignment must be legal
  // now.
  if (rule.permutable ? !refusals_.settle(rule, anchor, judge_fit(graph_, rule, c))
                      : !promising(rule, anchor, c))
    return false;
  add_choice(at, index).best = c;
  return true;
}

/// Returns true if the rule has a choice already, so that the next set of nodes may be the same
/// one.
bool MatchFinder::has_choice_of(std::uint32_t index) const {
  for (std::size_t i = 0; i < choice_count_; ++i)
    if (choices_[i].rule == index) return true;
  return false;
}

/// Returns choice number `at`, which may be one past the last.
MatchFinder::Choice& MatchFinder::add_choice(std::size_t at, std::uint32_t index) {
  if (at == choices_.size()) choices_.emplace_back();
  choice_count_ = std::max(choice_count_, at + 1);
  Choice& choice = choices_[at];
  const Candidate& like = pass_.rules[index].found;
  if (choice.best.nodes.size() != like.nodes.size() ||
      choice.best.values.size() != like.values.size()) {
    choice.best.nodes.resize(like.nodes.size());
    choice.best.swaps.resize(like.swaps.size());
    choice.best.values.resize(like.values.size());
  }
  choice.rule = index;
  choice.verdict = pass_.rules[index].verdicts->last();
  choice.legal = choice.waits = false;
  return choice;
}

/// Compares two assignments by position, which differs if a `given` node and a consumed one can be
/// exchanged. Then by the labels in pattern order, then by the operands as written.
bool MatchFinder::precedes(const PassRule& rule, const Candidate& a, const Candidate& b) const {
  const std::uint64_t here = position_of(graph_, rule, a), there = position_of(graph_, rule, b);
  if (here != there) return here < there;
  for (std::size_t i = 0; i < a.nodes.size(); ++i)
    if (a.nodes[i] != b.nodes[i]) return graph_.label(a.nodes[i]) < graph_.label(b.nodes[i]);
  return a.swaps < b.swaps;
}

/// Adds a match to the pending ones. Leaves `c` in an unspecified state.
[[gnu::flatten]] void MatchFinder::push(std::uint32_t index, NodeId anchor, Candidate& c,
                                        std::uint32_t verdict) {
  if (counting_) return void(++counted_);
  if (!queue_.seeding() && !pass_.counts(index, c.nodes)) return;
  if (pass_.cursor.active() ? pass_.cursor.passed(position_of(graph_, pass_.rules[index], c))
                            : !queue_.seeding() && queue_.is_pending(index, anchor, c, verdict))
    return;
  sweep_.matching() ? sweep_.offer(index, anchor, c, verdict)
                    : queue_.push(index, anchor, c, verdict);
}

}  // namespace pw
