// Records the matches that a rewrite creates, and those that it ends although all their nodes still
// exist.
#include <algorithm>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "rewriter/explain/match_history.hpp"

namespace pw {
namespace {

/// Users inspected for one value; the remaining ones are examined after the strategy.
constexpr std::size_t kMostUsers = 64;

/// Nodes near a rewrite: a match that it creates contains one of them.
class Around {
 public:
  explicit Around(const Graph& graph) : graph_(graph) {}

  void node(NodeId n) {
    add(n);
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) users(graph_.result(n, i));
    operands(n, false);
  }
  /// Adds nodes near an erased one: other readers of its operands may now match.
  void gone(NodeId n) { operands(n, true); }

  std::vector<NodeId> take() {
    std::sort(nodes_.begin(), nodes_.end());
    nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
    return std::move(nodes_);
  }

 private:
  void add(NodeId n) {
    if (n.valid() && graph_.alive(n)) nodes_.push_back(n);
  }
  void users(ValueId v) {
    std::size_t count = 0;
    for (UseId u = graph_.first_use(v); u.valid() && count < kMostUsers; u = graph_.next_use(u)) {
      add(graph_.user(u));
      ++count;
    }
  }
  void operands(NodeId n, bool with_users) {
    for (ValueId v : graph_.operands(n)) {
      if (!v.valid()) continue;
      if (!graph_.is_input(v)) add(graph_.producer(v));
      if (with_users) users(v);
    }
  }

  const Graph& graph_;
  std::vector<NodeId> nodes_;
};

}  // namespace

void MatchHistory::rewrote(const Strategy&, RunState& run) {
  const std::size_t before = state_.read;
  absorb(run);
  const Journal& journal = run.report.journal;
  for (Journal::Iterator at(&journal, before); !(at == journal.end()); ++at) {
    const JournalEvent event = *at;
    const auto* match = std::get_if<MatchEvent>(&event);
    if (match == nullptr) continue;
    probes_.graph_changed();
    recheck(*match, run.graph);
    discover(*match, run.graph);
  }
}

void MatchHistory::discover(const MatchEvent& event, const Graph& graph) {
  if (!probes_.hold()) return;
  Around around(graph);
  for (NodeId n : event.created) around.node(n);
  for (NodeId n : event.erased) around.gone(n);
  const std::vector<NodeId> nodes = around.take();
  for (const std::unique_ptr<Probe>& probe : probes_.all()) {
    if (!probe->layout().plain()) continue;
    for (NodeId n : nodes)
      probe->matches_with(n, [&](const Match& match) { add(graph, probe->layout(), match); });
  }
}

/// Checks matches again: the right side of a rewrite may read what a match consumes.
void MatchHistory::recheck(const MatchEvent& event, const Graph& graph) {
  if (!probes_.hold()) return;
  std::vector<std::uint32_t> indices;
  for (NodeId n : event.created)
    for (ValueId v : graph.operands(n))
      if (v.valid() && !graph.is_input(v))
        for (const std::uint32_t i : state_.records.standing_at(graph.producer(v)))
          indices.push_back(i);
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  for (const std::uint32_t i : indices) {
    std::optional<Reason> why = probes_.no_longer(*state_.records[i].seen);
    if (!why) continue;
    why->taken_by = RewriteStep{event.rule, rules_[event.rule].name, state_.pass, state_.step};
    why->message += ", since " + describe(*why->taken_by);
    lose(i, std::move(*why));
  }
}

}  // namespace pw
