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

/// Returns ", which `r` made at step 3" if a rewrite made the node. `read`: of the journal, when
/// `step` rewrites were made.
std::string made_by(NodeId node, const Journal& journal, const RunRules& rules, std::size_t read,
                    std::size_t step) {
  std::string out;
  for (Journal::Iterator at(&journal, read); !(at == journal.end()); ++at) {
    const JournalEvent event = *at;
    if (const auto* builtin = std::get_if<BuiltinEvent>(&event))
      if (builtin->pass != "saturate") step += builtin->erased.size();
    const auto* match = std::get_if<MatchEvent>(&event);
    if (match == nullptr) continue;
    ++step;
    if (std::find(match->created.begin(), match->created.end(), node) != match->created.end())
      out = fmt::format(", which `{}` made at step {}", rules[match->rule].name, step);
  }
  return out;
}

/// Returns the reason of a match in alternative `i` of a `best of`, which was not chosen.
Reason reason_not_chosen(const Choice& choice, std::size_t i) {
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
}

/// Returns the reason of matches that are undone for a promise. `shown`: nodes that it counts.
Reason reason_broken(BrokenPromise broken, const std::string& pass, Truth truth,
                     const std::string& shown) {
  Reason out;
  out.code = "N17";
  out.message = fmt::format("it was undone with all of `{}` in pass `{}`: `ensures {}` {}{}{}{}{}",
                            broken.strategy, pass, broken.promise,
                            truth == Truth::no ? "does not hold" : "cannot be decided",
                            broken.values.empty() ? "" : ", ", broken.values,
                            shown.empty() ? "" : ", because of ", shown);
  out.undone_by = std::move(broken);
  return out;
}

}  // namespace

void MatchHistory::restore() {
  Frame& frame = frames_.back();
  const Outcomes outcomes = state_.records.outcomes_since(frame.state.records);
  if (frame.alternative) frame.lost[*frame.alternative] = outcomes;
  state_ = frame.state;
  leaf_ = nullptr;
  if (!frame.broken) return;
  const std::set<std::string> known = state_.records.names();
  for (const MatchRecord& outcome : outcomes)
    state_.records.add_undone(outcome, *frame.broken, known);
  frame.broken.reset();
}

void MatchHistory::broken(const Strategy& strategy, const Expr& promise, const Ensured& ensured,
                          RunState& run) {
  constexpr std::size_t kShown = 3;
  Frame& frame = frames_.back();
  const std::vector<NodeId> nodes = made_first(ensured.counted, frame.nodes);
  BrokenPromise out{strategy.label, print(promise), ensured.values, {}};
  for (NodeId n : nodes) out.nodes.emplace_back(run.graph.node_name(n));
  std::string shown;
  for (std::size_t i = 0; i < std::min(nodes.size(), kShown); ++i)
    shown += fmt::format(
        "{}%{} ({}){}", shown.empty() ? "" : ", ", out.nodes[i], run.graph.op_of(nodes[i]).name,
        made_by(nodes[i], run.report.journal, rules_, frame.state.read, frame.state.step));
  if (nodes.size() > kShown) shown += fmt::format(" and {} more", nodes.size() - kShown);
  frame.broken = reason_broken(std::move(out), state_.pass, ensured.truth, shown);
}

void MatchHistory::chose(const Strategy& strategy, const Choice& choice) {
  Frame& frame = frames_.back();
  for (const auto& [i, outcomes] : frame.lost) {
    const std::set<std::string> known = state_.records.names();
    for (const MatchRecord& outcome : outcomes)
      if (i != choice.chosen && outcome.fate == Fate::applied)
        state_.records.add_undone(outcome, reason_not_chosen(choice, i), known);
  }
  for (MatchRecord& record : state_.records.all()) {
    const bool kept = may_run(rules_, strategy.parts[choice.chosen], *record.seen);
    if (record.fate != Fate::standing || record.why || kept) continue;
    for (std::size_t i = 0; i < strategy.parts.size() && !record.why; ++i)
      if (may_run(rules_, strategy.parts[i], *record.seen)) {
        record.why = reason_not_chosen(choice, i);
        record.why->at = record.seen->front;
      }
  }
}

}  // namespace pw
