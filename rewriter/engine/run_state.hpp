// State shared by the parts of one run: the graph, the layouts of rules, fuel, statistics and the
// journal.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "rewriter/engine/legality.hpp"
#include "rewriter/engine/watch.hpp"
#include "rewriter/rewriter.hpp"
#include "rewriter/strategies/layout.hpp"

namespace pw {

struct PreparedRule {
  RuleLayout layout;
  Env base;
};

struct RunState {
  Graph& graph;
  RunRules& rules;
  const Env& params;
  const RewriteOptions& options;
  RewriteReport report;
  bool barriers = false;           ///< the graph may hold ops with effects
  std::size_t rewrites = 0;        ///< of the whole run
  std::vector<std::int64_t> fuel;  ///< what is left, one for each enclosing `fuel`
  std::map<RuleId, std::unique_ptr<PreparedRule>> prepared;
  std::map<std::string, Span> pass_spans;  ///< by label
  std::set<std::string> refused;           ///< rules that a warning was given for
  RunWatch* watch = nullptr;               ///< null: there is no watcher

  const PreparedRule& prepare(RuleId id) {
    std::unique_ptr<PreparedRule>& slot = prepared[id];
    if (!slot)
      slot = std::make_unique<PreparedRule>(
          PreparedRule{lay_out(rules, id), starting_env(rules[id], params)});
    return *slot;
  }
  [[nodiscard]] bool out_of_fuel() const {
    for (std::int64_t left : fuel)
      if (left <= 0) return true;
    return false;
  }
  /// Adds a condition. Returns true if the facts changed, so that verdicts based on them may be
  /// wrong.
  bool note_condition(const Condition& condition) {
    const auto known = [&](const Condition& c) {
      return c.op == condition.op && c.a == condition.a && c.b == condition.b &&
             c.divides == condition.divides && c.text == condition.text;
    };
    if (std::none_of(report.conditions.begin(), report.conditions.end(), known))
      report.conditions.push_back(condition);
    Facts facts = with_conditions(graph, {condition});  // the graph holds only under the condition
    const auto equal = [](const auto& a, const auto& b) {
      const SymbolFact &x = a.second, &y = b.second;
      return a.first == b.first && x.min == y.min && x.max == y.max && x.multiple == y.multiple;
    };
    if (std::ranges::equal(facts.symbols, graph.facts.symbols, equal)) return false;
    graph.facts = std::move(facts);
    return true;
  }
  /// Warns once about a rule whose right side cannot be built.
  void warn_refused(const Rule& rule, const Graph& g, NodeId at, const Diagnostics& why) {
    if (!refused.insert(rule.name).second) return;
    Diagnostic warning = why.front();
    warning.severity = Severity::warning;
    warning.notes.push_back("so `" + rule.name + "` was not applied at %" +
                            std::string(g.node_name(at)));
    report.warnings.push_back(std::move(warning));
  }
  /// Warns once about a rule at which the matcher ran out of steps.
  void warn_given_up(const Rule& rule, const Graph& g, NodeId at, std::uint64_t steps) {
    if (!refused.insert(rule.name + " given up").second) return;
    Diagnostic warning =
        error_at(rule.name_span, "PW1113",
                 "`" + rule.name + "` was abandoned at %" + std::string(g.node_name(at)) +
                     " after " + std::to_string(steps) +
                     " steps of the matcher: its nodes can be tried in too many orders; matches "
                     "found so far are used",
                 "make its pattern smaller, or restrict its operands by types or a common value");
    warning.severity = Severity::warning;
    report.warnings.push_back(std::move(warning));
  }
  void count_rewrite() {
    ++rewrites;
    for (std::int64_t& left : fuel) --left;
  }
};

/// Sorts by rank, then by name, and removes duplicates. The variants of a frontier share its rank.
inline void sort_by_rank(const RunRules& rules, std::vector<RuleId>& ids) {
  std::sort(ids.begin(), ids.end(), [&](RuleId a, RuleId b) {
    const Rule &x = rules[a], &y = rules[b];
    return x.rank != y.rank ? x.rank < y.rank : x.name < y.name;
  });
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

/// Runs greedy, walk or once over the rules of one strategy, in the order of positions.
StopReason run_rules(RunState& run, const Strategy& strategy, PassStats& stats);

}  // namespace pw
