// Applies strategies to a graph: deterministic order, escape and convexity checks, dead code
// removal, journal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewriter/matcher/matcher.hpp"
#include "rewriter/strategies/journal.hpp"

namespace pw {

namespace extract {
struct NamedProblem;
}

struct Limits {
  std::size_t rewrites = 10'000'000;  ///< a whole run
  std::size_t per_node = 64;  ///< one pass: so many for each node it starts with, and 10 000
  std::uint64_t matcher_steps = std::uint64_t{1} << 22;  ///< at an anchor; then PW1113
};
enum class StopReason : std::uint8_t { fixpoint, fuel, limit, cycle, interrupted, undone };
[[nodiscard]] std::string_view name(StopReason reason);

struct RuleStats {
  std::size_t attempts = 0;                       ///< nodes from which a search started
  std::size_t hits = 0;                           ///< times its nodes and edges were all there
  std::size_t matches = 0;                        ///< rewrites made
  std::map<std::string, std::size_t> rejections;  ///< by code
  double seconds =
      0;  ///< after a hit: guards, replacing; the search is shared by all rules of a pass
};
struct PassStats {
  std::string pass;
  std::size_t nodes_before = 0, nodes_after = 0, rewrites = 0;
  double seconds = 0;
  bool skipped = false;  ///< its `when` was false
  StopReason stop = StopReason::fixpoint;
  std::map<std::string, RuleStats> rules;  ///< by full rule name
};
/// Decision of a `best of`.
struct Choice {
  std::string strategy;
  std::string by;                   ///< the cost that was compared
  std::vector<std::int64_t> costs;  ///< of each alternative, in text order
  std::size_t chosen = 0;
};
/// Result of a `saturate`. Costs are by the cost that it names.
struct Saturated {
  std::string strategy;
  std::string by;
  std::string stop;  ///< "complete", or the limit that ended it: "nodes 10000"
  std::size_t rounds = 0;
  std::size_t forms = 0;                    ///< distinct nodes of all equal graphs
  double ways = 0;                          ///< decimal logarithm of the ways to choose among them
  std::int64_t before = 0;                  ///< cost of the graph as it was
  std::int64_t greedy = 0;                  ///< of what `greedy` makes with the same rules
  std::int64_t cost = 0;                    ///< of what was kept
  std::int64_t bound = 0;                   ///< none of the equal graphs found costs less
  bool exact = false;                       ///< the bound is reached
  std::size_t parts = 0;                    ///< independent parts of the extraction
  std::size_t like_parts = 0;               ///< of these, equal to another
  std::map<std::string, std::size_t> left;  ///< by rule: matches that the limit left unapplied
};
struct RewriteReport {
  Journal journal;
  std::vector<PassStats> passes;
  std::vector<Choice> choices;         ///< in the order they were made
  std::vector<Saturated> saturations;  ///< in the order they ran
  /// Conditions of the `assume` of applied rules, each once: the graph is valid for steps that meet
  /// all of these.
  std::vector<Condition> conditions;
  Diagnostics warnings;  ///< rules that never fired, passes that did nothing
};

/// Matcher that runs greedy, walk and once. The naive one is the oracle of the other.
enum class EngineKind : std::uint8_t { compiled, naive };

/// Returns true for a warning that a rule or a pass did nothing.
[[nodiscard]] bool is_idle_warning(const Diagnostic& warning);

struct RewriteOptions {
  Limits limits;
  EngineKind engine = EngineKind::compiled;
  bool stats = false;  ///< count what each instruction of the matcher reports: attempts, rejections
  bool verify_each = false;
  bool hashes = false;  ///< the journal has the graph's structural hash before and after each pass
  /// Called with the graph before the first pass ("input") and after each top-level pass; for
  /// pictures and dumps.
  std::function<void(const std::string& pass, const Graph& graph)> after_pass;
  /// Called now and then in a pass: `done` of `total` nodes were visited, or matches tried.
  std::function<void(const std::string& pass, std::size_t done, std::size_t total,
                     std::string_view unit)>
      progress;
  /// Called with all forms that a `saturate` has found, in the representation of rewriter/extract.
  std::function<void(const extract::NamedProblem&)> after_saturation;
};

/// Runs a pipeline, pass or built-in by name on the graph, in place. Pipelines with ranges of
/// tokens require run_ranges (PW1109).
Result<RewriteReport> run_pipeline(Graph& graph, const RuleSet& rules, std::string_view pipeline,
                                   const Env& params, const RewriteOptions& options = {});
/// Applies one match. Fails with N08, N13 (escape, cycle) if it is not legal; the graph is then
/// unchanged.
Result<MatchEvent> apply_match(Graph& graph, const RunRules& rules, const Match& match);

/// Erases unneeded nodes: the built-in pass dce. Returns the number erased.
std::size_t eliminate_dead(Graph& graph, std::vector<NodeId>* erased = nullptr);
std::size_t eliminate_common(Graph& graph, std::vector<NodeId>* erased = nullptr);
/// Replaces `clone(x)` by x if nothing writes either, and if no output would share memory with an
/// input or with another output.
std::size_t elide_clones(Graph& graph, std::vector<NodeId>* erased = nullptr);

}  // namespace pw
