#include <algorithm>

#include <fmt/format.h>

#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "rewriter/explain/match_history.hpp"

namespace pw {
namespace {

using Fate = MatchRecord::Fate;

/// Returns the nodes that a statement counts: those made since come first.
std::vector<NodeId> made_first(std::vector<NodeId> nodes, std::size_t since) {
  std::stable_partition(nodes.begin(), nodes.end(), [&](NodeId n) { return n.index >= since; });
  return nodes;
}

std::string names_of(const SeenMatch& seen) {
  std::string out = seen.rule_name;
  for (const SeenNode& node : seen.nodes) out += " %" + node.name;
  return out;
}

}  // namespace

void MatchHistory::save(RunState& run) {
  Frame frame;
  frame.state = state_;
  frame.nodes = run.graph.node_bound();
  frames_.push_back(std::move(frame));
}

void MatchHistory::release() { frames_.pop_back(); }

void MatchHistory::try_alternative(std::size_t i) { frames_.back().alternative = i; }

void MatchHistory::restore() {
  Frame& frame = frames_.back();
  const Outcomes outcomes = outcomes_since(frame.state);
  if (frame.alternative) frame.lost[*frame.alternative] = outcomes;
  state_ = frame.state;
  leaf_ = nullptr;
  if (!frame.broken) return;
  const std::set<std::string> known = names_of_records();
  for (const MatchRecord& outcome : outcomes) set_back(outcome, *frame.broken, known);
  frame.broken.reset();
}

MatchHistory::Outcomes MatchHistory::outcomes_since(const State& before) const {
  Outcomes out;
  for (std::size_t i = 0; i < state_.records.size(); ++i)
    if (i >= before.records.size() || state_.records[i].fate != before.records[i].fate ||
        state_.records[i].why.has_value() != before.records[i].why.has_value())
      out.push_back(state_.records[i]);
  return out;
}

std::set<std::string> MatchHistory::names_of_records() const {
  std::set<std::string> out;
  for (const MatchRecord& record : state_.records) out.insert(names_of(*record.seen));
  return out;
}

/// Records the loss of an alternative. The kept alternative's effect on the match is its outcome,
/// not the reason why it was not applied.
void MatchHistory::lost_alternative(MatchRecord& record, Reason why) {
  if (record.loss) {
    why.taken_by = record.loss->taken_by;
    why.at = record.loss->at;
    record.notes.push_back(record.loss->message);
  }
  record.loss = std::move(why);
  record.refusal.reset();
}

/// Restores the outcome of a match that the present history does not contain.
void MatchHistory::set_back(const MatchRecord& outcome, const Reason& why,
                            const std::set<std::string>& told) {
  Reason reason = why;
  reason.at = outcome.seen->front;
  std::vector<NodeId> nodes;
  for (const SeenNode& node : outcome.seen->nodes) nodes.push_back(node.id);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const auto known = state_.known.find({outcome.seen->rule, nodes});
  const bool there =
      known != state_.known.end() && state_.records[known->second].seen == outcome.seen;
  if (there) {
    MatchRecord& record = state_.records[known->second];
    if (record.fate == Fate::applied) return;
    if (record.fate == Fate::lost) return lost_alternative(record, std::move(reason));
    if (outcome.fate == Fate::applied || outcome.fate == Fate::replaced) {
      record.why = std::move(reason);
      return;
    }
    record.why = outcome.fate == Fate::lost ? outcome.loss : outcome.why;
    if (!record.why) return;
    record.why->undone_by = why.undone_by;
    record.notes.push_back(why.message);
    return;
  }
  if (outcome.fate != Fate::applied || told.contains(names_of(*outcome.seen))) return;
  MatchRecord closed = outcome;
  closed.fate = Fate::lost;
  closed.applied.reset();
  closed.loss = std::move(reason);
  state_.records.push_back(std::move(closed));
}

void MatchHistory::broken(const Strategy& strategy, const Expr& promise, const Ensured& ensured,
                          RunState& run) {
  Frame& frame = frames_.back();
  BrokenPromise out{strategy.label, print(promise), ensured.values, {}};
  const std::vector<NodeId> nodes = made_first(ensured.counted, frame.nodes);
  constexpr std::size_t kShown = 3;
  std::string shown;
  for (NodeId n : nodes) {
    out.nodes.emplace_back(run.graph.node_name(n));
    if (out.nodes.size() > kShown) continue;
    shown += fmt::format("{}%{} ({}){}", shown.empty() ? "" : ", ", out.nodes.back(),
                         run.graph.op_of(n).name, made_by(n, run.report.journal));
  }
  if (nodes.size() > kShown) shown += fmt::format(" and {} more", nodes.size() - kShown);
  Reason why;
  why.code = "N17";
  why.message = fmt::format("it was undone with all of `{}` in pass `{}`: `ensures {}` {}{}{}{}{}",
                            strategy.label, state_.pass, out.promise,
                            ensured.truth == Truth::no ? "does not hold" : "cannot be decided",
                            ensured.values.empty() ? "" : ", ", ensured.values,
                            shown.empty() ? "" : ", because of ", shown);
  why.undone_by = std::move(out);
  frame.broken = std::move(why);
}

/// Returns ", made by `r` at step 3" if a rewrite that may be undone made the node.
std::string MatchHistory::made_by(NodeId node, const Journal& journal) const {
  const State& before = frames_.back().state;
  std::size_t step = before.step;
  std::string out;
  for (Journal::Iterator at(&journal, before.read); !(at == journal.end()); ++at) {
    const JournalEvent event = *at;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event))
      if (builtin->pass != "saturate") step += builtin->erased.size();
    const auto* match = std::get_if<MatchEvent>(&event);
    if (match == nullptr) continue;
    ++step;
    if (std::find(match->created.begin(), match->created.end(), node) != match->created.end())
      out = fmt::format(", which `{}` made at step {}", rules_[match->rule].name, step);
  }
  return out;
}

void MatchHistory::chose(const Strategy& strategy, const Choice& choice) {
  Frame& frame = frames_.back();
  const auto told = [&](std::size_t i) {
    Reason why;
    why.code = "N16";
    why.message = fmt::format(
        "alternative {} of `best of`, which has the rule, {} by `{}`; alternative {} was kept, {}",
        i + 1,
        choice.costs[i] == choice.costs[choice.chosen]
            ? fmt::format("costs as much, {},", choice.costs[i])
            : fmt::format("costs {}", choice.costs[i]),
        choice.by.empty() ? "nodes" : choice.by, choice.chosen + 1, choice.costs[choice.chosen]);
    why.help = "`pwr opt --stats` prints what each alternative costs";
    return why;
  };
  for (const auto& [i, outcomes] : frame.lost) {
    const std::set<std::string> known = names_of_records();
    for (const MatchRecord& outcome : outcomes)
      if (i != choice.chosen && outcome.fate == Fate::applied) set_back(outcome, told(i), known);
  }
  for (MatchRecord& record : state_.records) {
    const bool kept = may_run(strategy.parts[choice.chosen], *record.seen);
    if (record.fate != Fate::standing || record.why || kept) continue;
    for (std::size_t i = 0; i < strategy.parts.size() && !record.why; ++i)
      if (may_run(strategy.parts[i], *record.seen)) {
        record.why = told(i);
        record.why->at = record.seen->front;
      }
  }
}

}  // namespace pw
