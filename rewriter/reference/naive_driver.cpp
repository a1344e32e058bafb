#include "rewriter/reference/naive_driver.hpp"

#include <algorithm>

#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/engine/loop_guard.hpp"

namespace pw {
namespace {

struct Known {
  RuleId rule;
  Match match;
  std::vector<NodeId> own;         ///< sorted by id
  std::vector<std::uint64_t> key;  ///< position, rank, labels in pattern order
};

class NaiveDriver {
 public:
  NaiveDriver(RunState& run, const Strategy& strategy, PassStats& stats)
      : run_(run), graph_(run.graph), strategy_(strategy), stats_(stats) {
    for (RuleId id : strategy.rules)
      if (!run.rules[id].frontier) stats_.rules[run.rules[id].name];
    limit_ = 10'000 + run.options.limits.per_node * graph_.node_count();
  }

  StopReason run() {
    const bool once = strategy_.kind == ast::Strategy::Kind::once;
    if (once) first_ = identities(find());
    while (true) {
      std::vector<Known> known = find();
      if (once) std::erase_if(known, [&](const Known& k) { return !first_.contains(identity(k)); });
      const Known* next = first_free(known);
      if (next == nullptr) return StopReason::fixpoint;
      if (run_.out_of_fuel()) return StopReason::fuel;
      if (rewrites_ >= limit_ || run_.rewrites >= run_.options.limits.rewrites)
        return StopReason::limit;
      if (std::optional<StopReason> stop = replace(*next)) return *stop;
    }
  }

 private:
  using Identity = std::vector<std::uint32_t>;

  /// Returns the identity of a match: its set of nodes, in any assignment.
  static Identity identity(const Known& known) {
    Identity out{known.rule.index};
    for (NodeId n : all_nodes(known.match)) out.push_back(n.index);
    std::sort(out.begin() + 1, out.end());
    return out;
  }
  static std::set<Identity> identities(const std::vector<Known>& known) {
    std::set<Identity> out;
    for (const Known& k : known) out.insert(identity(k));
    return out;
  }

  std::vector<Known> find() {
    std::vector<Known> out;
    std::vector<RuleId> ids = opened_rules(graph_, run_.rules, strategy_.rules, run_.params);
    sort_by_rank(run_.rules, ids);
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      const PreparedRule& rule = run_.prepare(ids[i]);
      const auto fits = [&](const Match& match) {
        return try_out(rule, match) != Trial::forbidden;
      };
      for (Match& match : find_matches(graph_, run_.rules, ids[i], run_.params, fits)) {
        Known known;
        known.rule = ids[i];
        known.own = own_nodes(graph_, rule.layout, match);
        known.key = {graph_.label(known.own.front()), i};
        for (NodeId n : all_nodes(match)) known.key.push_back(graph_.label(n));
        std::sort(known.own.begin(), known.own.end());
        if (known.key.front() < cursor_ || try_out(rule, match) != Trial::changed) continue;
        known.match = std::move(match);
        out.push_back(std::move(known));
      }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Known& a, const Known& b) { return a.key < b.key; });
    return out;
  }

  Trial try_out(const PreparedRule& rule, const Match& match) {
    Graph copy = graph_;
    copy.forget_undo();
    return try_apply(copy, rule.layout, match, run_.barriers);
  }

  [[nodiscard]] bool goes_before(const Known& a, const Known& b) const {
    std::vector<NodeId> shared;
    std::set_intersection(a.own.begin(), a.own.end(), b.own.begin(), b.own.end(),
                          std::back_inserter(shared));
    if (shared.empty()) return false;
    if (run_.rules.is_over(a.rule, b.rule)) return true;
    if (run_.rules.is_over(b.rule, a.rule)) return false;
    return shared.size() == b.own.size() && a.own.size() > b.own.size();
  }

  const Known* first_free(const std::vector<Known>& known) const {
    for (const Known& k : known) {
      const bool waits = std::any_of(known.begin(), known.end(), [&](const Known& other) {
        return &other != &k && goes_before(other, k);
      });
      if (!waits) return &k;
    }
    return known.empty() ? nullptr : &known.front();
  }

  std::optional<StopReason> replace(const Known& known) {
    const PreparedRule& rule = run_.prepare(known.rule);
    if (run_.watch != nullptr) run_.watch->rewriting(known.rule, all_nodes(known.match), run_);
    Result<Applied> applied = apply(graph_, rule.layout, known.match, run_.barriers);
    if (!applied) return StopReason::interrupted;  // it was tried just before
    for (const Condition& c : known.match.conditions) run_.note_condition(c);
    ++rewrites_;
    ++stats_.rewrites;
    ++stats_.rules[rule.layout.rule->name].matches;
    run_.count_rewrite();
    if (strategy_.kind == ast::Strategy::Kind::walk)
      cursor_ = graph_.label(first_of(graph_, known.own));
    for (NodeId n : applied->event.created)
      run_.barriers = run_.barriers || is_barrier(graph_.op_of(n));
    const std::vector<RuleId> cycle =
        guard_.after(graph_, applied->event.rule, known.own, applied->event.created);
    run_.report.journal.add(applied->event);
    if (run_.watch != nullptr) run_.watch->rewrote(strategy_, run_);
    if (cycle.empty()) return std::nullopt;
    return StopReason::cycle;
  }

  RunState& run_;
  Graph& graph_;
  const Strategy& strategy_;
  PassStats& stats_;
  std::set<Identity> first_;
  std::size_t rewrites_ = 0, limit_ = 0;
  std::uint64_t cursor_ = 0;
  LoopGuard guard_;
};

}  // namespace

StopReason run_rules_naive(RunState& run, const Strategy& strategy, PassStats& stats) {
  return NaiveDriver(run, strategy, stats).run();
}

}  // namespace pw
