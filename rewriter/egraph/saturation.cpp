// Drives equality saturation. A greedy run comes first, and its graph is added to the equal ones,
// so that the result is never worse than greedy. Then growth (growth.cpp) and extraction
// (extraction.cpp), and the extracted graph replaces the old one. If the result is not cheaper,
// everything is rolled back; if greedy's graph is cheaper, that one is kept.
#include "rewriter/egraph/saturation.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "rewriter/egraph/cost_model.hpp"
#include "rewriter/egraph/extraction.hpp"
#include "rewriter/engine/growth.hpp"
#include "rewriter/engine/snapshot.hpp"

namespace pw {
namespace {

/// Result of `greedy` on the graph with the same rules.
struct GreedyRun {
  std::int64_t cost = 0;
  std::size_t nodes = 0;
  bool ended = false;  ///< without reaching a limit
  std::vector<MatchEvent> rewrites;
  std::vector<NodeId> end;  ///< the nodes of its graph
};

constexpr std::int64_t kMoreRewrites = 1000, kRewritesPerNode = 4;

Strategy as_greedy(const Strategy& strategy) {
  Strategy greedy = strategy;
  greedy.kind = ast::Strategy::Kind::greedy;
  return greedy;
}

/// Runs greedy with a limit on rewrites, since rules that undo each other never end.
StopReason run_greedy(RunState& run, const Strategy& strategy, PassStats& stats) {
  run.fuel.push_back(kMoreRewrites +
                     kRewritesPerNode * static_cast<std::int64_t>(run.graph.node_count()));
  const StopReason stop = run_rules(run, as_greedy(strategy), stats);
  run.fuel.pop_back();
  return stop;
}

/// Tries greedy without a trace: without a watcher, and with everything undone.
GreedyRun try_greedy(RunState& run, const Strategy& strategy, CostModel& cost) {
  RunWatch* watch = std::exchange(run.watch, nullptr);
  PassStats scratch;
  const Snapshot before = take_snapshot(run, scratch);
  const Journal::Mark mark = run.report.journal.mark();
  const bool ended = run_greedy(run, strategy, scratch) == StopReason::fixpoint;
  GreedyRun out{cost.of_graph(), run.graph.node_count(), ended, {}, run.graph.order()};
  for (Journal::Iterator at(&run.report.journal, mark); !(at == run.report.journal.end()); ++at) {
    JournalEvent event = *at;
    if (auto* match = std::get_if<MatchEvent>(&event)) out.rewrites.push_back(std::move(*match));
  }
  restore(run, scratch, before);
  run.watch = watch;
  return out;
}

/// Adds greedy's graph to the forms, rewrite by rewrite. Returns its nodes by their ids here; empty
/// if a rewrite cannot be repeated.
std::vector<NodeId> repeat_greedy(Growth& growth, const GreedyRun& greedy, std::size_t bound) {
  std::map<NodeId, NodeId> here;
  const auto known = [&](NodeId n) {
    if (n.index < bound) return n;
    const auto found = here.find(n);
    return found == here.end() ? NodeId() : found->second;
  };
  for (const MatchEvent& event : greedy.rewrites) {
    std::vector<NodeId> matched;
    for (NodeId n : event.matched) matched.push_back(known(n));
    if (std::any_of(matched.begin(), matched.end(), [](NodeId n) { return !n.valid(); })) return {};
    const std::vector<NodeId> made = growth.repeat(event.rule, matched);
    if (made.size() != event.created.size()) return {};
    for (std::size_t i = 0; i < made.size(); ++i) here[event.created[i]] = made[i];
  }
  std::vector<NodeId> out;
  for (NodeId n : greedy.end) out.push_back(known(n));
  return out;
}

/// Replaces the graph by the extracted one; returns the erased nodes.
std::vector<NodeId> install(Graph& graph, const EGraph& equal, const Extraction& best) {
  const auto chosen = [&](ValueId v) { return best.chosen.at(equal.find(v)); };
  std::vector<std::pair<std::size_t, std::string>> names;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    names.emplace_back(i, graph.value_name(graph.outputs()[i]));
  for (NodeId n : best.nodes) graph.move_before(n, {});
  for (NodeId n : best.nodes)
    for (std::size_t i = 0; i < graph.operand_count(n); ++i)
      if (graph.operand(n, i).valid() && graph.operand(n, i) != chosen(graph.operand(n, i)))
        graph.set_operand(n, i, chosen(graph.operand(n, i)));
  for (std::size_t i = 0; i < graph.outputs().size(); ++i)
    graph.set_output(i, chosen(graph.outputs()[i]));
  const std::set<NodeId> kept(best.nodes.begin(), best.nodes.end());
  std::vector<NodeId> gone;
  for (bool again = true; again;) {
    again = false;
    for (NodeId n = graph.last(); n.valid();) {
      const NodeId before = graph.previous(n);
      bool unused = !kept.contains(n);
      for (std::size_t i = 0; unused && i < graph.result_count(n); ++i)
        unused = graph.unused(graph.result(n, i));
      if (unused) {
        graph.erase(n);
        gone.push_back(n);
        again = true;
      }
      n = before;
    }
  }
  for (const auto& [i, name] : names) {
    const ValueId v = graph.outputs()[i];
    if (!graph.is_input(v) && graph.value_name(v) != name) graph.rename(v, name);
  }
  return gone;
}

/// Returns true if the result contains nodes made by the application. If it made none: if the
/// values that it made equal are in the result in another form.
bool is_part_of(const Graph& graph, const EGraph& equal, const Extraction& best,
                const std::set<NodeId>& kept, const EqualApplication& done) {
  if (!done.created.empty())
    return std::any_of(done.created.begin(), done.created.end(),
                       [&](NodeId n) { return kept.contains(n); });
  return std::any_of(done.replaced.begin(), done.replaced.end(), [&](ValueId v) {
    return best.chosen.contains(equal.find(v)) && !kept.contains(graph.producer(v));
  });
}

/// Returns the key of an application up to equal values: each is reported once.
std::vector<std::uint32_t> forms_of(const Graph& graph, const EGraph& equal,
                                    const EqualApplication& done) {
  std::vector<std::uint32_t> key{done.rule.index};
  for (NodeId n : done.matched) {
    key.insert(key.end(), {graph.op(n).index, graph.attributes(n).index});
    for (ValueId v : graph.operands(n))
      key.push_back(v.valid() ? equal.find(v).index : ValueId::kNone);
  }
  return key;
}

std::string stop_text(const Growth& growth, GrowthStop stop) {
  switch (stop) {
    case GrowthStop::complete: return "complete";
    case GrowthStop::nodes: return fmt::format("nodes {}", growth.most_nodes());
    case GrowthStop::rounds: return fmt::format("rounds {}", growth.rounds());
    case GrowthStop::matches: return fmt::format("matches {}", growth.most_matches());
  }
  return "";
}

/// Returns a text for the gap between the cost and the bound over the forms found.
std::string distance_text(const Saturated& found) {
  if (found.bound >= found.cost)
    return fmt::format("{} {}, the best of these", found.by, found.cost);
  return fmt::format("{} {}, where the best of these is at least {}", found.by, found.cost,
                     found.bound);
}

/// Warns about a limit. It is not an error, since every result is sound, but a better graph may
/// have been missed.
void warn_of_limit(RunState& run, const Strategy& strategy, const Saturated& found) {
  if (found.stop == "complete") return;
  std::string left;
  for (const auto& [rule, matches] : found.left)
    left += fmt::format("{}`{}` {}", left.empty() ? "" : ", ", rule, matches);
  run.report.warnings.push_back(warning_at(
      strategy.span, "PW1116",
      fmt::format("`saturate` stopped at its limit of {}, with {} forms after {} rounds: {}{}",
                  found.stop, found.forms, found.rounds, distance_text(found),
                  left.empty() ? "" : "; matches left unapplied: " + left),
      "raise the limits with `nodes N` and `rounds K` after the pass"));
}

/// Replaces the graph; the applications that led to it become the history.
void keep(RunState& run, PassStats& stats, Growth& growth, const Extraction& best,
          std::size_t bound) {
  Graph& graph = run.graph;
  for (const Condition& condition : growth.conditions) run.note_condition(condition);
  const std::set<NodeId> kept(best.nodes.begin(), best.nodes.end());
  BuiltinEvent gone{"saturate", {}};
  for (NodeId n : install(graph, growth.equal(), best))
    if (n.index < bound) gone.erased.push_back(n);
  std::set<std::vector<std::uint32_t>> recorded;
  for (EqualApplication& done : growth.applications) {
    if (!is_part_of(graph, growth.equal(), best, kept, done)) continue;
    if (!recorded.insert(forms_of(graph, growth.equal(), done)).second) continue;
    MatchEvent event{done.rule, std::move(done.matched), std::move(done.bindings), {}, {}};
    std::copy_if(done.created.begin(), done.created.end(), std::back_inserter(event.created),
                 [&](NodeId n) { return kept.contains(n); });
    run.report.journal.add(event);
    ++stats.rewrites;
    ++stats.rules[run.rules[event.rule].name].matches;
    run.count_rewrite();
  }
  run.report.journal.add(gone);
}

}  // namespace

Result<StopReason> run_saturation(RunState& run, const Strategy& strategy, PassStats& stats) {
  Graph& graph = run.graph;
  if (run.barriers)
    return fail(strategy.span, "PW1112", "a graph with effects cannot be saturated",
                "ops that write to their operands cannot be moved; use `greedy`");
  CostModel cost(graph, run.rules.set(), strategy.cost, run.params);
  const GreedyRun greedy = try_greedy(run, strategy, cost);
  graph.start_undo();
  const Graph::Checkpoint before = graph.checkpoint();
  const std::size_t bound = graph.node_bound(), count = graph.node_count();
  Saturated found;
  found.strategy = strategy.label;
  found.by = strategy.cost.empty() ? "nodes" : strategy.cost;
  found.before = cost.of_graph();
  found.greedy = greedy.cost;
  const std::vector<NodeId> written = graph.order();
  Growth growth(run, strategy);
  const bool cheaper = std::pair(greedy.cost, greedy.nodes) < std::pair(found.before, count);
  const std::vector<NodeId> repeated =
      greedy.ended && cheaper ? repeat_greedy(growth, greedy, bound) : std::vector<NodeId>();
  const GrowthStop stop = growth.grow();
  found.stop = stop_text(growth, stop);
  found.rounds = growth.rounds();
  found.forms = growth.equal().forms().size();
  for (const auto& [rule, matches] : growth.left) found.left[run.rules[rule].name] += matches;
  Extracting extracting(graph, growth.equal(), [&](NodeId n) { return cost.of(n); });
  if (run.options.after_saturation) run.options.after_saturation(extracting.named());
  const std::optional<Extraction> best = extracting.run({written, repeated});
  if (!cost.error().empty()) {
    graph.rollback(before);
    return tl::unexpected<Diagnostics>(cost.error());
  }
  auto least = std::pair(found.before, count);
  if (best) {
    found.bound = best->bound;
    found.exact = best->exact;
    found.ways = best->ways;
    found.parts = best->parts;
    found.like_parts = best->like_parts;
    if (const auto key = std::pair(best->cost, best->nodes.size()); key < least) least = key;
  }
  if (std::pair(greedy.cost, greedy.nodes) < least) {
    least = {greedy.cost, greedy.nodes};
    graph.rollback(before);
    run_greedy(run, strategy, stats);
  } else if (least < std::pair(found.before, count)) {
    keep(run, stats, growth, *best, bound);
  } else {
    graph.rollback(before);
  }
  found.cost = least.first;
  found.bound = std::min(found.bound, found.cost);
  warn_of_limit(run, strategy, found);
  run.report.saturations.push_back(std::move(found));
  return stop == GrowthStop::complete ? StopReason::fixpoint : StopReason::fuel;
}

}  // namespace pw
