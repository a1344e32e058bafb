// Undoing is in match_history_undo.cpp, the matches that a single rewrite creates in
// match_history_steps.cpp.
#include "rewriter/explain/match_history.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/explain/no_change.hpp"

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

std::vector<NodeId> by_id(std::vector<NodeId> nodes) {
  std::erase_if(nodes, [](NodeId n) { return !n.valid(); });
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

/// Describes what the built-in pass did to a removed node.
std::string deed(std::string_view builtin) {
  if (builtin == "cse") return "was merged with an equal node";
  if (builtin == "dce") return "was not used, and was removed";
  if (builtin == "elide_clones") return "was a redundant copy, and was removed";
  return "was removed";
}

std::string named(const SeenNode& node) { return fmt::format("%{} ({})", node.name, node.op); }

std::optional<Reason> refusal(const Diagnostic& why, std::size_t at) {
  Reason out;
  out.code = why.code;
  out.span = why.span;
  out.at = at;
  out.help = why.help;
  // For types the codes are those of apply(), if an output would get another one, and PW03xx.
  const bool build = why.code.starts_with("PW"), type = why.code == "N05" || why.code == "N06";
  const std::string what = why.code.starts_with("PW03") || type ? "typed" : "built";
  out.message = build || type
                    ? fmt::format("its right side cannot be {} here: {}", what, why.message)
                    : why.message;
  if (!why.label.empty()) out.message += ": " + why.label;
  return out;
}

}  // namespace

SeenNode see(const Graph& graph, NodeId node) {
  SeenNode out{node, std::string(graph.node_name(node)), graph.op_of(node).name, "", {}};
  if (graph.alive(node)) out.text = print_node(graph, node);
  out.names.push_back(out.name);
  for (std::size_t i = 0; i < graph.result_count(node); ++i)
    out.names.emplace_back(graph.value_name(graph.result(node, i)));
  return out;
}

std::string without_numbers(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      out += c;
    else if (out.empty() || out.back() != '*')
      out += '*';
  }
  return out;
}

std::optional<Reason> refusal_of(Graph& scratch, const RuleLayout& layout, const Match& match,
                                 bool barriers, std::size_t front) {
  const Result<bool> differs = would_change(scratch, layout, match, barriers);
  if (!differs) return refusal(differs.error().front(), front);
  if (*differs) return std::nullopt;
  Reason out;
  out.code = kNoChange;
  out.at = front;
  out.message = "it would change nothing: its result equals what it replaces";
  out.help = "a guard, `where …`, can rule such matches out";
  return out;
}

bool holds_rule(const Strategy& strategy, const std::set<RuleId>& rules) {
  return std::any_of(strategy.rules.begin(), strategy.rules.end(),
                     [&](RuleId r) { return rules.contains(r); }) ||
         std::any_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return holds_rule(part, rules); });
}

MatchHistory::MatchHistory(RunRules& rules, std::vector<RuleId> asked, const Env& params,
                           std::string before)
    : rules_(rules),
      asked_(std::move(asked)),
      asked_set_(asked_.begin(), asked_.end()),
      params_(params),
      before_label_(std::move(before)) {}

MatchHistory::~MatchHistory() = default;

const std::vector<MatchRecord>& MatchHistory::records() const { return state_.records; }
std::size_t MatchHistory::rewrites() const { return state_.rewrites; }

void MatchHistory::begin_run() { state_.read = state_.seen = 0; }

std::vector<RuleId> MatchHistory::opened(const Graph& graph) {
  return opened_rules(graph, rules_, asked_, params_);
}

bool MatchHistory::is_asked(RuleId rule) const { return asked_set_.contains(rules_.loaded(rule)); }

bool MatchHistory::has(const Strategy& leaf, const SeenMatch& seen) const {
  return std::any_of(leaf.rules.begin(), leaf.rules.end(), [&](RuleId r) {
    return r == seen.rule || (rules_[r].frontier && rules_[r].base_name == seen.base_name);
  });
}

bool MatchHistory::may_run(const Strategy& strategy, const SeenMatch& seen) const {
  return has(strategy, seen) ||
         std::any_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return may_run(part, seen); });
}

std::string MatchHistory::where(const RewriteStep& step) const {
  return fmt::format("`{}` at step {} of pass `{}`", step.name, step.step, step.pass);
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
    if (holds_rule(strategy, asked_set_)) left_out_ = strategy.label;
    if (!before_label_.empty() && strategy.label == before_label_) keep_graph(run);
    return;
  }
  const bool own = rewrites_own(strategy);
  if (before_label_.empty() ? own : strategy.label == before_label_) keep_graph(run);
  if (!rewrites_here(strategy)) return;
  leaf_ = &strategy;
  ++leaves_;
  if (!own) return;
  ran_ = true;
  for (MatchRecord& record : state_.records)
    if (record.fate == Fate::lost && has(strategy, *record.seen)) {
      record.starved = true;
      if (record.missed_by.empty()) record.missed_by = state_.pass;
    }
}

void MatchHistory::end(const Strategy& strategy, StopReason stop, RunState& run) {
  if (rewrites_here(strategy)) {
    absorb(run);
    leaf_ = nullptr;
    refresh(run, rewrites_own(strategy));
    if (rewrites_own(strategy)) judge(strategy, stop);
  } else if (strategy.kind == Kind::repeat && stop == StopReason::fuel) {
    judge_rounds(strategy);
  }
}

bool MatchHistory::rewrites_here(const Strategy& strategy) { return pw::rewrites(strategy); }

bool MatchHistory::rewrites_own(const Strategy& strategy) const {
  return std::any_of(strategy.rules.begin(), strategy.rules.end(),
                     [&](RuleId r) { return asked_set_.contains(r); });
}

void MatchHistory::start(RunState& run) {
  if (started_) return;
  started_ = true;
  refresh(run, true);
}

void MatchHistory::keep_graph(const RunState& run) {
  if (before_) return;
  before_ = std::make_unique<Graph>(run.graph);
  std::string pass;
  std::size_t step = 0;
  for (const JournalEvent& event : run.report.journal) {
    if (const auto* begin = std::get_if<PassBegin>(&event)) pass = begin->pass, step = 0;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event))
      if (builtin->pass != "saturate") step += builtin->erased.size();
    const auto* match = std::get_if<MatchEvent>(&event);
    if (match == nullptr) continue;
    ++step;
    for (NodeId n : match->created)
      makers_[n] = {match->rule, rules_[match->rule].name, pass, step};
  }
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
  if (is_asked(event.rule)) note_applied(event, step, graph);
  if (leaf_ != nullptr && leaf_->kind == Kind::saturate)
    for (NodeId n : event.matched) saturated_.try_emplace(n, step);
  lose_to(step, event);
}

void MatchHistory::note_applied(const MatchEvent& event, const RewriteStep& step,
                                const Graph& graph) {
  ++state_.rewrites;
  const auto known = state_.known.find({event.rule, by_id(event.matched)});
  if (known != state_.known.end() && state_.records[known->second].fate == Fate::standing) {
    leave(known->second, Fate::applied);
    state_.records[known->second].applied = step;
    return;
  }
  const Rule& rule = rules_[event.rule];
  SeenMatch seen;
  seen.rule = event.rule;
  seen.rule_name = rule.name;
  seen.base_name = rule.base_name;
  seen.span = rule.name_span;
  for (NodeId n : event.matched)
    if (n.valid()) seen.nodes.push_back(see(graph, n));
  seen.own = event.erased;
  if (!seen.nodes.empty()) seen.place = without_numbers(graph.group(seen.nodes.front().id));
  MatchRecord record;
  record.seen = std::make_shared<const SeenMatch>(std::move(seen));
  record.fate = Fate::applied;
  record.applied = step;
  state_.records.push_back(std::move(record));
}

void MatchHistory::leave(std::size_t record, Fate fate) {
  state_.records[record].fate = fate;
  for (const SeenNode& node : state_.records[record].seen->nodes) {
    const auto at = state_.at_node.find(node.id.index);
    if (at == state_.at_node.end()) continue;
    std::erase(at->second, static_cast<std::uint32_t>(record));
    if (at->second.empty()) state_.at_node.erase(at);
  }
}

void MatchHistory::lose(std::size_t record, Reason why) {
  leave(record, Fate::lost);
  MatchRecord& lost = state_.records[record];
  lost.loss = std::move(why);
  lost.starved = leaf_ != nullptr && has(*leaf_, *lost.seen);
}

std::vector<std::uint32_t> MatchHistory::standing_at(NodeId node) const {
  const auto at = state_.at_node.find(node.index);
  return at == state_.at_node.end() ? std::vector<std::uint32_t>() : at->second;
}

void MatchHistory::lose_to(const RewriteStep& step, const MatchEvent& event) {
  const Rule& winner = rules_[event.rule];
  for (NodeId n : event.erased)
    for (const std::uint32_t i : standing_at(n)) {
      const SeenMatch& seen = *state_.records[i].seen;
      const bool sibling = seen.rule != event.rule && seen.base_name == winner.base_name;
      if (sibling && is_asked(event.rule))
        leave(i, Fate::replaced);
      else
        lose(i, taken_reason(seen, step, event));
    }
}

/// Returns the reason of a taken match: its first node that the rewrite matched, else one that
/// became unneeded.
Reason MatchHistory::taken_reason(const SeenMatch& seen, const RewriteStep& step,
                                  const MatchEvent& event) const {
  const auto in = [](const std::vector<NodeId>& nodes, NodeId n) {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  };
  const auto find = [&](bool matched) {
    return static_cast<std::size_t>(std::find_if(seen.nodes.begin(), seen.nodes.end(),
                                                 [&](const SeenNode& node) {
                                                   return in(event.erased, node.id) &&
                                                          (!matched || in(event.matched, node.id));
                                                 }) -
                                    seen.nodes.begin());
  };
  Reason out;
  out.at = find(true);
  const bool consumed = out.at < seen.nodes.size();
  if (!consumed) out.at = find(false);
  const bool together = leaf_ != nullptr && has(*leaf_, seen);
  const bool above = together && rules_.is_over(event.rule, seen.rule);
  out.code = above ? "N16" : "N10";
  out.taken_by = step;
  out.message = above ? fmt::format("{} was taken by {}, which is declared over it",
                                    named(seen.nodes[out.at]), where(step))
                      : fmt::format("{} was {} by {}", named(seen.nodes[out.at]),
                                    consumed ? "consumed" : "left without a user", where(step));
  if (!together)
    out.help = fmt::format(
        "give `{}` a pass before `{}`, or put both rules in one pass and declare which goes first "
        "with `over`",
        seen.base_name, step.pass);
  return out;
}

/// Ends the matches of a node. `how` describes what happened to it. `code` is for a match whose own
/// pass did it.
void MatchHistory::lose_node(NodeId node, const RewriteStep& step, std::string_view code,
                             const std::string& how) {
  for (const std::uint32_t i : standing_at(node)) {
    const SeenMatch& seen = *state_.records[i].seen;
    const bool together = leaf_ != nullptr && has(*leaf_, seen);
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
    lose_node(n, step, "N10", fmt::format("{} by {}", deed(event.pass), where(step)));
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
                            where(by->second)));
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
  const auto [known, fresh] =
      state_.known.try_emplace({layout.id, by_id(nodes)}, state_.records.size());
  if (!fresh && state_.records[known->second].fate != Fate::lost) return known->second;
  if (fresh) {
    state_.records.emplace_back();
    state_.records.back().seen = seen_match(graph, layout, match);
  }
  MatchRecord& record = state_.records[known->second];
  record.fate = Fate::standing;
  record.loss.reset();
  record.missed_by.clear();
  for (const SeenNode& node : record.seen->nodes)
    state_.at_node[node.id.index].push_back(static_cast<std::uint32_t>(known->second));
  return known->second;
}

std::shared_ptr<const SeenMatch> MatchHistory::seen_match(const Graph& graph,
                                                          const RuleLayout& layout,
                                                          const Match& match) const {
  const Rule& rule = rules_[layout.id];
  auto out = std::make_shared<SeenMatch>();
  out->rule = layout.id;
  out->rule_name = rule.name;
  out->base_name = rule.base_name;
  out->span = rule.name_span;
  out->pattern = match.nodes;
  for (NodeId n : all_nodes(match))
    if (n.valid()) out->nodes.push_back(see(graph, n));
  out->own = own_nodes(graph, layout, match);
  const NodeId front = out->own.front();
  while (out->front + 1 < out->nodes.size() && out->nodes[out->front].id != front) ++out->front;
  out->place = without_numbers(graph.group(front));
  out->since = state_.pass;
  out->leaf = leaves_;
  return out;
}

/// Searches for all matches if the graph may have new ones since the last search.
void MatchHistory::refresh(RunState& run, bool try_again) {
  const std::size_t mark = run.report.journal.mark();
  const bool changed = state_.seen != mark;
  if (!changed && !try_again) return;
  state_.seen = mark;
  const std::vector<RuleId> ids = opened(run.graph);
  prepare_probes(run.graph, ids);
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
    Reason why = no_longer(*state_.records[i].seen).value_or(Reason());
    if (why.code.empty()) continue;
    why.message += fmt::format(", since pass `{}`", state_.pass);
    lose(i, std::move(why));
  }
}

void MatchHistory::judge(const Strategy& leaf, StopReason stop) {
  for (MatchRecord& record : state_.records) {
    if (record.fate != Fate::standing || !has(leaf, *record.seen)) continue;
    record.why = record.refusal ? record.refusal : stopped(leaf, stop, *record.seen);
  }
}

/// Returns why a strategy with the rule left a match that could be applied.
std::optional<Reason> MatchHistory::stopped(const Strategy& leaf, StopReason stop,
                                            const SeenMatch& seen) const {
  Reason out;
  out.at = seen.front;
  const std::string rewrites =
      fmt::format("{} rewrite{}", state_.step, state_.step == 1 ? "" : "s");
  const bool later = seen.leaf == leaves_;
  if (stop == StopReason::fuel) {
    out.code = "N12";
    out.message = fmt::format("pass `{}` had used up its fuel after {}", state_.pass, rewrites);
  } else if (stop == StopReason::limit || stop == StopReason::interrupted) {
    out.code = "N12";
    out.message = fmt::format("pass `{}` was stopped after {}", state_.pass, rewrites);
    out.help = "check whether a rule builds what it matches";
  } else if (stop == StopReason::cycle) {
    out.code = "N12";
    out.message = fmt::format(
        "pass `{}` was stopped after {}: its rules rewrite each other's results endlessly",
        state_.pass, rewrites);
    out.help = "make one of the rules stricter, or remove one from the pass";
  } else if (leaf.kind == Kind::saturate) {
    out.code = "N16";
    out.message = "`saturate` keeps the cheapest graph, which does not contain it";
  } else if (later && (leaf.kind == Kind::once || leaf.kind == Kind::walk)) {
    out.code = "N11";
    out.message = fmt::format(
        "it appeared in pass `{}`, in a `{}`, which {}", state_.pass,
        leaf.kind == Kind::once ? "once" : "walk",
        leaf.kind == Kind::once ? "does not rewrite its own results" : "never goes back");
    out.help = "`greedy` continues until no rule matches";
  } else {
    return std::nullopt;
  }
  return out;
}

void MatchHistory::judge_rounds(const Strategy& strategy) {
  for (MatchRecord& record : state_.records) {
    if (record.fate != Fate::standing || record.why || !may_run(strategy, *record.seen)) continue;
    Reason why;
    why.code = "N12";
    why.at = record.seen->front;
    why.message =
        fmt::format("pass `{}` had used up its fuel, the rounds of `repeat`", state_.pass);
    record.why = std::move(why);
  }
}

void MatchHistory::finish() {
  for (MatchRecord& record : state_.records) {
    if (record.fate != Fate::standing || record.why) continue;
    record.why = record.refusal;
    if (record.why) continue;
    Reason why;
    why.code = "N11";
    why.at = record.seen->front;
    why.message = record.seen->since.empty()
                      ? std::string("no pass that has the rule ran")
                      : fmt::format("it appeared in pass `{}`, and no later pass has the rule",
                                    record.seen->since);
    if (!left_out_.empty())
      why.message +=
          fmt::format("; `{}`, which has it, was skipped: its `when` is not true", left_out_);
    record.why = std::move(why);
  }
}

}  // namespace pw
