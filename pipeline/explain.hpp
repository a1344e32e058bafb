// Explains why a rule did not match a graph, and finds the matches of a pattern.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dsl/editing/query.hpp"
#include "pipeline/load.hpp"
#include "pipeline/report/table.hpp"
#include "rewriter/explain/explain.hpp"
#include "viz/viz.hpp"

namespace pw {

struct ExplainRequest {
  std::string rule;        ///< a rule, family or group
  ExplainOptions options;  ///< `piece_of` is set if `pieces` is
  bool pieces = false;     ///< require a match to be within one piece of the split graph
};

/// Fails with PW1423 if options need a pipeline and none is named.
Status check_options(const ExplainRequest& request);
/// Fails with PW1420 and the nearest name if the rules contain no such rule, family, or group.
Status check_rule_name(const RuleSet& rules, const std::string& name);
/// Explains a rule. Fails like the two checks above, and with PW1424 if no node has the name
/// `options.at`.
Result<Explanation> explain_rule(const Graph& graph, const LoadedRules& rules,
                                 const ExplainRequest& request);
/// Returns near misses of the executed passes' rules in the final graph: at most four for a node,
/// nearest first. Skips graphs with more than `most_nodes` nodes and reports that.
PageMisses near_misses_of(const Graph& graph, const LoadedRules& rules,
                          const std::vector<Version>& versions, std::size_t most_nodes = 5000);
/// { "rule", "matches", "applied": [ { "rule", "pass", "step", … } ],
///   "near_misses": [ { "code", "rule", "at", "message", "taken_by", … } ] }
[[nodiscard]] std::string explanation_to_json(const Explanation& found, const std::string& rule);

/// Returns the meaning of a code N01 … N17 or of a diagnostic such as PW0220; empty for an unknown
/// code.
[[nodiscard]] std::string_view code_meaning(std::string_view code);
/// Returns the remedy for a code; may be empty.
[[nodiscard]] std::string_view code_help(std::string_view code);
/// Returns all codes: code, meaning, help.
[[nodiscard]] Table code_table();

/// A pattern without a rule, ready for matching.
struct LoadedPattern {
  Query query;
  Env params;
};
/// Loads a pattern. `source.rules`: files whose shared patterns it may use; `source.definitions`:
/// values of their params.
Result<LoadedPattern> load_pattern(const ContextPtr& context, const std::string& pattern,
                                   const RuleSource& source);

struct PatternMatch {
  std::vector<std::pair<std::string, std::string>> nodes;     ///< name, op
  std::vector<std::pair<std::string, std::string>> bindings;  ///< variable, and its value
};
struct PatternMatches {
  std::vector<PatternMatch> matches;
  std::vector<Explanation> nearest;  ///< without a match: the nearest miss of each variant
};
PatternMatches match_pattern(const Graph& graph, const LoadedPattern& pattern);
/// Returns at most `most` rows.
[[nodiscard]] Table match_table(const PatternMatches& found, std::size_t most);

}  // namespace pw
