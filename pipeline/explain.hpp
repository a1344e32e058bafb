// Why a rule did not match a graph, and where a pattern does.
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
  ExplainOptions options;  ///< its `piece_of` is that of `pieces`
  bool pieces = false;     ///< a match has to lie in one piece of the graph, as the rules cut it
};

/// PW1423 where options need a pipeline, and none is named.
Status check_options(const ExplainRequest& request);
/// PW1420 with the nearest name where the rules have no such rule, family or group.
Status check_rule_name(const RuleSet& rules, const std::string& name);
/// The same mistakes, and PW1424 where no node is called `options.at`.
Result<Explanation> explain_rule(const Graph& graph, const LoadedRules& rules,
                                 const ExplainRequest& request);
/// What rules of the passes that ran nearly matched in the graph they left, at most four for a
/// node, the nearest first. Of graphs with more nodes than `most_nodes` none, and that is said.
PageMisses near_misses_of(const Graph& graph, const LoadedRules& rules,
                          const std::vector<Version>& versions, std::size_t most_nodes = 5000);
/// { "rule", "matches", "applied": [ { "rule", "pass", "step", … } ],
///   "near_misses": [ { "code", "rule", "at", "message", "taken_by", … } ] }
[[nodiscard]] std::string explanation_to_json(const Explanation& found, const std::string& rule);

/// Of a code N01 … N17, or of a diagnostic's, PW0220; empty for another word.
[[nodiscard]] std::string_view code_meaning(std::string_view code);
/// What to do about it; may be empty.
[[nodiscard]] std::string_view code_help(std::string_view code);
/// All codes: code, meaning, help.
[[nodiscard]] Table code_table();

/// A pattern without a rule, ready to be looked for.
struct LoadedPattern {
  Query query;
  Env params;
};
/// `source.rules`: files whose shared patterns it may use; `source.definitions`: of their params.
Result<LoadedPattern> load_pattern(const ContextPtr& context, const std::string& pattern,
                                   const RuleSource& source);

struct PatternMatch {
  std::vector<std::pair<std::string, std::string>> nodes;     ///< name, op
  std::vector<std::pair<std::string, std::string>> bindings;  ///< variable, what it stands for
};
struct PatternMatches {
  std::vector<PatternMatch> matches;
  std::vector<Explanation> nearest;  ///< without a match: the nearest miss of each variant
};
PatternMatches match_pattern(const Graph& graph, const LoadedPattern& pattern);
/// `most` rows at most.
[[nodiscard]] Table match_table(const PatternMatches& found, std::size_t most);

}  // namespace pw
