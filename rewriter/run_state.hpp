// What the parts of one run share: the graph, the rules as laid out, fuel, statistics and the
// journal.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "rewriter/layout.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

struct PreparedRule {
  RuleLayout layout;
  Env base;
};

struct RunState {
  Graph& graph;
  const RuleSet& rules;
  const Env& params;
  const RewriteOptions& options;
  RewriteReport report;
  bool barriers = false;           ///< the graph may hold ops with effects
  std::size_t rewrites = 0;        ///< of the whole run
  std::vector<std::int64_t> fuel;  ///< what is left, one for each enclosing `fuel`
  std::map<RuleId, std::unique_ptr<PreparedRule>> prepared;
  std::map<std::string, Span> pass_spans;  ///< by label

  const PreparedRule& prepare(RuleId id) {
    std::unique_ptr<PreparedRule>& slot = prepared[id];
    if (!slot)
      slot = std::make_unique<PreparedRule>(
          PreparedRule{lay_out(rules, id), starting_env(rules.rules[id], params)});
    return *slot;
  }
  [[nodiscard]] bool out_of_fuel() const {
    for (std::int64_t left : fuel)
      if (left <= 0) return true;
    return false;
  }
  void count_rewrite() {
    ++rewrites;
    for (std::int64_t& left : fuel) --left;
  }
};

/// greedy, walk or once over the rules of one strategy, in the order of positions.
StopReason run_rules(RunState& run, const Strategy& strategy, PassStats& stats);

}  // namespace pw
