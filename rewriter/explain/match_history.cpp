// Undoing is in match_history_undo.cpp, the matches that a single rewrite creates in
// match_history_steps.cpp.
#include "rewriter/explain/match_history.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rewriter/engine/legality.hpp"
#include "rewriter/explain/match_reasons.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;
using Fate = MatchRecord::Fate;

bool rewrites(const Strategy& strategy) {
  switch (strategy.kind) {
    case Kind::greedy:
    case Kind::once:
    case Kind::walk:
    case Kind::saturate: return true;
    case Kind::reference: return !strategy.builtin.empty();
    case Kind::sequence:
    case Kind::repeat:
    case Kind::atomic:
    case Kind::best: return false;
  }
  return false;
}

/// Describes what the built-in pass did to a removed node.
std::string deed(std::string_view builtin) {
  if (builtin == "cse") return "was merged with an equal node";
  if (builtin == "dce") return "was not used, and was removed";
  if (builtin == "elide_clones") return "was a redundant copy, and was removed";
  return "was removed";
}

/// Returns the rewrites that made nodes.
std::map<NodeId, RewriteStep> makers_of(const Journal& journal, const RunRules& rules) {
  std::map<NodeId, RewriteStep> out;
  std::string pass;
  std::size_t step = 0;
  for (const JournalEvent& event : journal) {
    if (const auto* begin = std::get_if<PassBegin>(&event)) pass = begin->pass, step = 0;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event))
      if (builtin->pass != "saturate") step += builtin->erased.size();
    const auto* match = std::get_if<MatchEvent>(&event);
    if (match == nullptr) continue;
    ++step;
    for (NodeId n : match->created) out[n] = {match->rule, rules[match->rule].name, pass, step};
  }
  return out;
}

}  // namespace

bool holds_rule(const Strategy& strategy, const std::set<RuleId>& rules) {
  return std::any_of(strategy.rules.begin(), strategy.rules.end(),
                     [&](RuleId r) { return rules.contains(r); }) ||
         std::any_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return holds_rule(part, rules); });
}

bool has_rule_of(const RunRules& rules, const Strategy& leaf, const SeenMatch& seen) {
  return std::any_of(leaf.rules.begin(), leaf.rules.end(), [&](RuleId r) {
    return r == seen.rule || (rules[r].frontier && rules[r].base_name == seen.base_name);
  });
}

bool may_run(const RunRules& rules, const Strategy& strategy, const SeenMatch& seen) {
  return has_rule_of(rules, strategy, seen) ||
         std::any_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return may_run(rules, part, seen); });
}

MatchHistory::MatchHistory(RunRules& rules, std::vector<RuleId> followed, const Env& params,
                           std::string before)
    : rules_(rules),
      followed_(std::move(followed)),
      followed_set_(followed_.begin(), followed_.end()),
      params_(params),
      before_label_(std::move(before)),
      probes_(rules, params) {}

std::vector<RuleId> MatchHistory::opened(const Graph& graph) {
  return opened_rules(graph, rules_, followed_, params_);
}

bool MatchHistory::is_followed(RuleId rule) const {
  return followed_set_.contains(rules_.loaded(rule));
}

// ---- the run's calls

void MatchHistory::begin_pass(const Strategy& pass, RunState& run) {
  start(run);
  state_.pass = pass.label;
  state_.step = 0;
}

void MatchHistory::reach(const Strategy& strategy, bool wanted, RunState& run) {
  start(run);
  if (!wanted) {
    if (holds_rule(strategy, followed_set_)) left_out_ = strategy.label;
    if (!before_label_.empty() && strategy.label == before_label_) keep_graph(run);
    return;
  }
  const bool own = rewrites_own(strategy);
  if (before_label_.empty() ? own : strategy.label == before_label_) keep_graph(run);
  if (!pw::rewrites(strategy)) return;
  leaf_ = &strategy;
  ++leaves_;
  if (!own) return;
  ran_ = true;
  for (MatchRecord& record : state_.records.all())
    if (record.fate == Fate::lost && has_rule_of(rules_, strategy, *record.seen)) {
      record.starved = true;
      if (record.missed_by.empty()) record.missed_by = state_.pass;
    }
}

void MatchHistory::end(const Strategy& strategy, StopReason stop, RunState& run) {
  if (pw::rewrites(strategy)) {
    absorb(run);
    leaf_ = nullptr;
    refresh(run, rewrites_own(strategy));
    if (rewrites_own(strategy)) judge(strategy, stop);
  } else if (strategy.kind == Kind::repeat && stop == StopReason::fuel) {
    judge_rounds(strategy);
  }
}

bool MatchHistory::rewrites_own(const Strategy& strategy) const {
  return std::any_of(strategy.rules.begin(), strategy.rules.end(),
                     [&](RuleId r) { return followed_set_.contains(r); });
}

void MatchHistory::start(RunState& run) {
  if (started_) return;
  started_ = true;
  refresh(run, true);
}

void MatchHistory::keep_graph(const RunState& run) {
  if (before_) return;
  before_ = std::make_unique<Graph>(run.graph);
  makers_ = makers_of(run.report.journal, rules_);
}

// ---- events of the journal

void MatchHistory::absorb(RunState& run) {
  const Journal& journal = run.report.journal;
  for (Journal::Iterator at(&journal, state_.read); !(at == journal.end()); ++at) {
    const JournalEvent event = *at;
    if (const auto* match = std::get_if<MatchEvent>(&event)) absorb(*match, run.graph);
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event)) absorb(*builtin);
  }
  state_.read = journal.mark();
}

void MatchHistory::absorb(const MatchEvent& event, const Graph& graph) {
  const RewriteStep step{event.rule, rules_[event.rule].name, state_.pass, ++state_.step};
  if (is_followed(event.rule)) note_applied(event, step, graph);
  if (leaf_ != nullptr && leaf_->kind == Kind::saturate)
    for (NodeId n : event.matched) saturated_.try_emplace(n, step);
  lose_to(step, event);
}

void MatchHistory::note_applied(const MatchEvent& event, const RewriteStep& step,
                                const Graph& graph) {
  ++state_.rewrites;
  const std::optional<std::size_t> known = state_.records.find(event.rule, event.matched);
  if (known && state_.records[*known].fate == Fate::standing) {
    state_.records.leave(*known, Fate::applied);
    state_.records[*known].applied = step;
    return;
  }
  MatchRecord record;
  record.seen = std::make_shared<const SeenMatch>(seen_match(graph, rules_[event.rule], event));
  record.fate = Fate::applied;
  record.applied = step;
  state_.records.add(std::move(record));
}

void MatchHistory::lose(std::size_t record, Reason why) {
  state_.records.leave(record, Fate::lost);
  MatchRecord& lost = state_.records[record];
  lost.loss = std::move(why);
  lost.starved = runs_now(*lost.seen);
}

void MatchHistory::lose_to(const RewriteStep& step, const MatchEvent& event) {
  const Rule& winner = rules_[event.rule];
  for (NodeId n : event.erased)
    for (const std::uint32_t i : state_.records.standing_at(n)) {
      const SeenMatch& seen = *state_.records[i].seen;
      const bool sibling = seen.rule != event.rule && seen.base_name == winner.base_name;
      if (sibling && is_followed(event.rule))
        state_.records.leave(i, Fate::replaced);
      else
        lose(i, reason_taken(seen, step, event, runs_now(seen),
                             runs_now(seen) && rules_.is_over(event.rule, seen.rule)));
    }
}

/// Ends the matches of a node. `how` describes what happened to it. `code` is for a match whose own
/// pass did it.
void MatchHistory::lose_node(NodeId node, const RewriteStep& step, std::string_view code,
                             const std::string& how) {
  for (const std::uint32_t i : state_.records.standing_at(node)) {
    const SeenMatch& seen = *state_.records[i].seen;
    const bool together = runs_now(seen);
    Reason out;
    out.code = together ? code : "N10";
    out.taken_by = step;
    while (out.at + 1 < seen.nodes.size() && seen.nodes[out.at].id != node) ++out.at;
    out.message = fmt::format("{} {}", named(seen.nodes[out.at]), how);
    if (!together)
      out.help = fmt::format("give `{}` a pass before `{}`", seen.base_name, step.pass);
    lose(i, std::move(out));
  }
}

void MatchHistory::absorb(const BuiltinEvent& event) {
  if (event.pass == "saturate") return absorb_saturation(event);
  for (NodeId n : event.erased) {
    const RewriteStep step{RuleId(), event.pass, state_.pass, ++state_.step};
    lose_node(n, step, "N10", fmt::format("{} by {}", deed(event.pass), describe(step)));
  }
}

/// Absorbs a saturation. `saturate` erases nothing while it rewrites; nodes that the extracted
/// graph lacks are erased at its end.
void MatchHistory::absorb_saturation(const BuiltinEvent& event) {
  for (NodeId n : by_id(event.erased)) {
    const auto by = saturated_.find(n);
    if (by != saturated_.end())
      lose_node(n, by->second, "N16",
                fmt::format("was replaced by {}; the graph that `saturate` kept costs less",
                            describe(by->second)));
    else
      lose_node(n, {RuleId(), "saturate", state_.pass, state_.step}, "N16",
                fmt::format("is not in the graph that `saturate` kept in pass `{}`, the cheapest",
                            state_.pass));
  }
  saturated_.clear();
}

// ---- current matches

std::size_t MatchHistory::add(const Graph& graph, const RuleLayout& layout, const Match& match) {
  const std::vector<NodeId> nodes = all_nodes(match);
  const std::optional<std::size_t> known = state_.records.find(layout.id, nodes);
  if (known && state_.records[*known].fate != Fate::lost) return *known;
  std::shared_ptr<SeenMatch> seen;
  if (!known) {
    seen = std::make_shared<SeenMatch>(seen_match(graph, rules_[layout.id], layout, match));
    seen->since = state_.pass;
    seen->leaf = leaves_;
  }
  return state_.records.stand(known, nodes, std::move(seen));
}

/// Searches for all matches if the graph may have new ones since the last search.
void MatchHistory::refresh(RunState& run, bool try_again) {
  const std::size_t mark = run.report.journal.mark();
  const bool changed = state_.seen != mark;
  if (!changed && !try_again) return;
  state_.seen = mark;
  const std::vector<RuleId> ids = opened(run.graph);
  probes_.prepare(run.graph, ids);
  std::unique_ptr<Graph> scratch;
  std::set<std::size_t> found;
  for (RuleId id : ids) {
    const RuleLayout layout = lay_out(rules_, id);
    for (const Match& match : find_matches(run.graph, rules_, id, params_)) {
      const std::size_t i = add(run.graph, layout, match);
      found.insert(i);
      MatchRecord& record = state_.records[i];
      if (record.fate != Fate::standing || (record.tried && !try_again)) continue;
      if (!scratch) {
        scratch = std::make_unique<Graph>(run.graph);
        scratch->forget_undo();
      }
      record.tried = true;
      record.refusal = refusal_of(*scratch, layout, match, run.barriers, record.seen->front);
    }
  }
  vanish(found);
}

/// Ends matches whose nodes all exist, and that no longer match.
void MatchHistory::vanish(const std::set<std::size_t>& found) {
  for (std::size_t i = 0; i < state_.records.size(); ++i) {
    if (state_.records[i].fate != Fate::standing || found.contains(i)) continue;
    Reason why = probes_.no_longer(*state_.records[i].seen).value_or(Reason());
    if (why.code.empty()) continue;
    why.message += fmt::format(", since pass `{}`", state_.pass);
    lose(i, std::move(why));
  }
}

void MatchHistory::judge(const Strategy& leaf, StopReason stop) {
  for (MatchRecord& record : state_.records.all()) {
    if (record.fate != Fate::standing || !has_rule_of(rules_, leaf, *record.seen)) continue;
    record.why = record.refusal ? record.refusal
                                : reason_left(leaf, stop, *record.seen, state_.pass, state_.step,
                                              record.seen->leaf == leaves_);
  }
}

void MatchHistory::judge_rounds(const Strategy& strategy) {
  for (MatchRecord& record : state_.records.all()) {
    if (record.fate != Fate::standing || record.why || !may_run(rules_, strategy, *record.seen))
      continue;
    record.why = reason_out_of_rounds(*record.seen, state_.pass);
  }
}

void MatchHistory::finish() {
  for (MatchRecord& record : state_.records.all()) {
    if (record.fate != Fate::standing || record.why) continue;
    record.why = record.refusal;
    if (record.why) continue;
    record.why = reason_unreached(*record.seen, left_out_);
  }
}

}  // namespace pw
