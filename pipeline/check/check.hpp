// Rule files read and analysed: what is in them, what was found, and the order in which rules
// enable each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/judge/judge.hpp"
#include "pipeline/report/table.hpp"
#include "rewriter/analysis/analysis.hpp"

namespace pw {

struct CheckRequest {
  std::vector<std::string> files;
  bool analyse = true;  ///< look for rules that compete, never fire, or may not end
  bool judge = false;   ///< judge the rules, if there are at most kMostProved
};
/// Beyond these a check would take minutes that nobody asked for.
inline constexpr std::size_t kMostProved = 300;

struct CheckedRules {
  RuleSet rules;
  AnalysisReport report;
  bool analysed = true;
  std::map<RuleId, RuleJudgement> judgements;  ///< empty where none was asked for
  bool judgements_left_out = false;            ///< asked for of more than kMostProved rules
  std::vector<std::string> files;              ///< as they were named
  /// Returns the warnings of loading, then the findings, each with its graph as a note, then the
  /// rules that change numbers.
  [[nodiscard]] Diagnostics warnings() const;
  [[nodiscard]] Diagnostics judgement_warnings() const;
};

/// Every mistake of the files at once.
Result<CheckedRules> check_rule_files(const ContextPtr& context, const CheckRequest& request,
                                      const Log& log = {});

/// Rules, and of each what is proved of its numbers; passes, pipelines and params; what was found.
[[nodiscard]] Table check_table(const CheckedRules& checked);
/// "196 of 204 rules are proved to keep the numbers", or why nobody looked; empty where none was
/// asked for.
[[nodiscard]] std::string proofs_line(const CheckedRules& checked);
/// What the analysis did not look at, a line each.
[[nodiscard]] std::vector<std::string> scope_lines(const AnalysisReport& report);
/// A rule file with the graphs of the findings as tests.
[[nodiscard]] std::string finding_tests(const AnalysisReport& report,
                                        const std::vector<std::string>& files);
/// The rules in an order in which each stands behind those that build what it matches.
[[nodiscard]] Table order_table(const RuleSet& rules);
[[nodiscard]] std::string order_dot(const RuleSet& rules);

/// A list of rows, each with its `kind`: what is in the files, rules with their verdict; then what
/// was found, what was not analysed, and a `summary`.
[[nodiscard]] std::string check_to_json(const CheckedRules& checked);
/// Rows of the kind `error`, of files that do not load, and a `summary`.
[[nodiscard]] std::string mistakes_to_json(const Diagnostics& mistakes, const SourceMap& sources);

/// A `use` of a rule file as it was named, for a file that may stand elsewhere.
[[nodiscard]] std::string use_line(const std::string& file);

}  // namespace pw
