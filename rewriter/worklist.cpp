// Exports run_rules: seeding, taking the next match, and applying it. Requeueing is in
// worklist_requeue.cpp.
#include "rewriter/worklist.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "rewriter/legality.hpp"

namespace pw {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Worklist::Worklist(RunState& run, const Strategy& strategy, PassStats& stats)
    : run_(run), graph_(run.graph), strategy_(strategy), stats_(stats), heap_(Later{&entries_}) {
  std::vector<RuleId> ids = strategy.rules;
  std::stable_sort(ids.begin(), ids.end(), [&](RuleId a, RuleId b) {
    return run.rules.rules[a].rank < run.rules.rules[b].rank;
  });
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (RuleId id : ids) {
    const PreparedRule& prepared = run.prepare(id);
    auto index = static_cast<std::uint32_t>(rules_.size());
    rules_.push_back(&prepared);
    rule_stats_.push_back(&stats.rules[prepared.layout.rule->name]);
    const Rule& r = *prepared.layout.rule;
    if (PatternNodeId anchor = anchor_of(r); anchor.valid())
      anchors_[r.nodes[anchor].op.index].push_back(index);
    for (std::size_t n = 0; n < r.nodes.size(); ++n)
      roles_[r.nodes[PatternNodeId(n)].op.index].push_back({index, PatternNodeId(n)});
  }
  for (const PreparedRule* r : rules_) {
    std::set<std::uint32_t>& over = over_.emplace_back();
    for (RuleId other : r->layout.rule->over)
      for (std::uint32_t i = 0; i < rules_.size(); ++i)
        if (rules_[i]->layout.id == other) over.insert(i);
  }
  limit_ = 10'000 + run.options.limits.per_node * graph_.node_count();
}

StopReason Worklist::run() {
  seed();
  while (true) {
    if (std::optional<StopReason> stop = step()) return *stop;
    if (!heap_.empty()) continue;
    if (!release_waiting() && !retry_refused()) return StopReason::fixpoint;
  }
}

void Worklist::seed() {
  version_ = graph_.renumberings();
  for (NodeId n : graph_.order()) {
    auto it = anchors_.find(graph_.op(n).index);
    if (it == anchors_.end()) continue;
    for (std::uint32_t r : it->second) attempt(r, n);
  }
}

void Worklist::attempt(std::uint32_t rule_index, NodeId anchor) {
  std::optional<Match> match = best_match(rule_index, anchor, true);
  if (match) add(rule_index, anchor, match->nodes);
}

/// Of all matches at the anchor the one that comes first in the total order, or the one of `only`
/// these nodes. Rules with very many are cut short.
std::optional<Match> Worklist::best_match(std::uint32_t rule_index, NodeId anchor, bool count,
                                          const std::vector<NodeId>* only) {
  constexpr int kEnough = 64;
  auto start = std::chrono::steady_clock::now();
  const PreparedRule& prepared = *rules_[rule_index];
  Search search(graph_, prepared.layout, prepared.base, false);
  std::optional<Match> best;
  std::vector<std::uint64_t> best_key;
  int found = 0;
  search.run(anchor, [&](const Match& match) {
    if (only != nullptr && match.nodes != *only) return true;
    Entry candidate;
    candidate.rule = rule_index;
    describe(candidate, match.nodes);
    if (!best || candidate.key < best_key) {
      best = match;
      best_key = std::move(candidate.key);
    }
    return ++found < kEnough;
  });
  RuleStats& stats = *rule_stats_[rule_index];
  stats.seconds += seconds_since(start);
  if (!count) return best;
  ++stats.attempts;
  if (!best && search.furthest().any()) ++stats.rejections[search.furthest().code];
  if (!best && std::string_view(search.furthest().code) == "N13")
    refused_.insert({rule_index, anchor});
  return best;
}

void Worklist::describe(Entry& entry, const std::vector<NodeId>& nodes) const {
  entry.nodes = nodes;
  entry.own = own_nodes(graph_, rules_[entry.rule]->layout, nodes);
  std::sort(entry.own.begin(), entry.own.end());
  entry.key = key_of(entry);
}

std::vector<std::uint64_t> Worklist::key_of(const Entry& entry) const {
  std::uint64_t position = ~std::uint64_t{0};
  for (NodeId n : entry.own) position = std::min(position, graph_.label(n));
  std::vector<std::uint64_t> key{position, entry.rule};  // rules_ is sorted by rank
  for (NodeId n : entry.nodes) key.push_back(graph_.label(n));
  return key;
}

void Worklist::add(std::uint32_t rule_index, NodeId anchor, const std::vector<NodeId>& nodes) {
  Entry entry;
  entry.rule = rule_index;
  entry.anchor = anchor;
  describe(entry, nodes);
  if (strategy_.kind == ast::Strategy::Kind::walk && entry.key[0] < cursor_) return;
  auto id = static_cast<std::uint32_t>(entries_.size());
  for (NodeId n : entry.own) at_node_[n.index].push_back(id);
  current_[place_key({rule_index, anchor})] = id;
  entries_.push_back(std::move(entry));
  heap_.push(id);
}

void Worklist::kill(std::uint32_t id) {
  Entry& entry = entries_[id];
  if (!entry.live) return;
  entry.live = false;
  current_.erase(place_key({entry.rule, entry.anchor}));
  for (std::uint32_t waiting : entry.waiting)
    if (entries_[waiting].live) heap_.push(waiting);
  // An entry on the heap needs its key still; the rest may go.
  entry.waiting = {};
  entry.nodes = {};
  entry.own = {};
}

/// All labels changed, and not their order; but keys are compared across entries, so all are made
/// anew.
void Worklist::rekey() {
  std::vector<std::uint32_t> ids;
  for (; !heap_.empty(); heap_.pop()) ids.push_back(heap_.top());
  for (Entry& entry : entries_)
    if (entry.live) entry.key = key_of(entry);
  for (std::uint32_t id : ids)
    if (entries_[id].live) heap_.push(id);
  version_ = graph_.renumberings();
}

std::optional<StopReason> Worklist::step() {
  if (version_ != graph_.renumberings()) rekey();
  if (heap_.empty()) return std::nullopt;
  std::uint32_t id = heap_.top();
  heap_.pop();
  if (!entries_[id].live) return std::nullopt;
  // Moving nodes only makes labels larger, so a stale key is too small and is found when it comes
  // up.
  if (std::vector<std::uint64_t> key = key_of(entries_[id]); key != entries_[id].key) {
    entries_[id].key = std::move(key);
    heap_.push(id);
    return std::nullopt;
  }
  return take(id);
}

std::optional<StopReason> Worklist::take(std::uint32_t id) {
  if (!force_)
    if (std::optional<std::uint32_t> blocker = blocker_of(entries_[id])) {
      entries_[*blocker].waiting.push_back(id);
      return std::nullopt;
    }
  force_ = false;
  if (run_.out_of_fuel()) return StopReason::fuel;
  if (rewrites_ >= limit_ || run_.rewrites >= run_.options.limits.rewrites)
    return StopReason::limit;
  std::uint32_t rule_index = entries_[id].rule;
  NodeId anchor = entries_[id].anchor;
  bool once = strategy_.kind == ast::Strategy::Kind::once;
  std::optional<Match> match;
  if (graph_.alive(anchor))
    match = best_match(rule_index, anchor, false, once ? &entries_[id].nodes : nullptr);
  if (match && match->nodes == entries_[id].nodes) return replace(id, *match);
  kill(id);
  if (match && !once) add(rule_index, anchor, match->nodes);
  return std::nullopt;
}

std::optional<StopReason> Worklist::replace(std::uint32_t id, const Match& match) {
  std::uint32_t rule_index = entries_[id].rule;
  NodeId anchor = entries_[id].anchor;
  std::uint64_t position = entries_[id].key[0], version = graph_.renumberings();
  NodeId before =
      graph_.previous(own_nodes(graph_, rules_[rule_index]->layout, match.nodes).front());
  Result<Applied> applied = apply(graph_, rules_[rule_index]->layout, match, run_.barriers);
  if (!applied || !applied->changed) {
    if (!applied) refuse(rule_index, anchor, applied.error());
    kill(id);
    return std::nullopt;
  }
  ++rewrites_;
  ++stats_.rewrites;
  ++rule_stats_[rule_index]->matches;
  run_.count_rewrite();
  kill(id);
  advance_cursor(position, before, version);
  requeue(*applied);
  for (NodeId n : applied->event.created)
    run_.barriers = run_.barriers || is_barrier(graph_.op_of(n));
  std::vector<RuleId> cycle = guard_.after(graph_, applied->event);
  run_.report.journal.add(std::move(applied->event));
  if (cycle.empty()) return std::nullopt;
  Diagnostic warning = error_at(strategy_.span, "PW1103",
                                fmt::format("the rules {} rewrite each other's results for ever",
                                            describe_cycle(run_.rules, cycle)),
                                "make one of them stricter, or leave one out of the pass");
  warning.severity = Severity::warning;
  for (RuleId r : cycle)
    warning.secondary.push_back({run_.rules.rules[r].name_span, "part of the cycle"});
  run_.report.warnings.push_back(std::move(warning));
  return StopReason::cycle;
}

/// A match that cannot be applied. A right side that cannot be built is the rule's mistake, and
/// said once.
void Worklist::refuse(std::uint32_t rule_index, NodeId anchor, const Diagnostics& why) {
  std::size_t& count = rule_stats_[rule_index]->rejections[why.front().code];
  ++count;
  if (why.front().code == "N13") refused_.insert({rule_index, anchor});
  if (count > 1 || !why.front().code.starts_with("PW")) return;
  Diagnostic warning = why.front();
  warning.severity = Severity::warning;
  warning.notes.push_back(fmt::format("so `{}` was not applied at %{}", rule(rule_index).name,
                                      graph_.node_name(anchor)));
  run_.report.warnings.push_back(std::move(warning));
}

void Worklist::advance_cursor(std::uint64_t position, NodeId before, std::uint64_t version) {
  if (strategy_.kind != ast::Strategy::Kind::walk) return;
  if (version == graph_.renumberings())
    cursor_ = position;
  else
    cursor_ = before.valid() && graph_.alive(before) ? graph_.label(before) + 1 : 0;
}

StopReason run_rules(RunState& run, const Strategy& strategy, PassStats& stats) {
  return Worklist(run, strategy, stats).run();
}

}  // namespace pw
