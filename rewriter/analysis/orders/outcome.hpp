// Runs a pass on a small graph and reports the outcome, with the text of a test that shows it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/analysis/checks.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

struct Outcome {
  Graph graph;
  StopReason stop = StopReason::fixpoint;
  std::vector<RuleId> fired;          ///< in order
  std::vector<NodeId> first_matched;  ///< by the first of them
  [[nodiscard]] std::size_t count(const RuleSet& rules, const std::string& written) const;
};
/// Runs a strategy; nothing if the run fails, or a rule is given up. `reach`: of the strategy's own
/// rules; only those that may match run.
std::optional<Outcome> run_on(const Graph& graph, const Reach& reach, const Strategy& strategy,
                              const Env& params, std::size_t most_rewrites = 500);

/// Returns the strategy without `when` and `ensures`, which refer to whole graphs.
Strategy unconditional(Strategy strategy);

/// Strategy that `apply` runs in the text of a test: the owner if the pass is all of it, else the
/// pass's rules that may match on the graph, under a separate name.
struct Application {
  Strategy strategy;
  std::string text;  ///< of the pass, if it must be written; else empty
  std::string name;
};
/// Creates the application. `reach`: of the pass.
Application applicable(const Analysis& analysis, const RulePass& pass, const Reach& reach,
                       const Graph& graph, const std::string& test);
/// Returns the outcome that the test will check.
std::optional<Outcome> run_applied(const Analysis& analysis, const Application& applied,
                                   const Reach& reach, const Graph& graph, const Env& params);

/// Returns the text of a test. `expectations`: "a == 1".
std::string test_text(const std::string& name, const Graph& graph, const Application& applied,
                      const RuleSet& rules, const Env& params,
                      const std::vector<std::string>& expectations);
std::string expected_count(const Outcome& outcome, const RuleSet& rules,
                           const std::string& written);

/// Returns a hash that is equal for graphs that compute the same expressions in as many nodes,
/// whatever their order and that of commutative operands.
std::uint64_t hash_of_terms(const Graph& graph);
std::map<std::string, std::size_t> op_counts(const Graph& graph);

}  // namespace pw
