// Loads and analyzes rule files: their contents, findings, and the order in which rules enable each
// other.
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
  bool analyse = true;  ///< find rules that compete, never fire, or may not terminate
  bool judge = false;   ///< judge the rules, if there are at most kMostProved
  bool library = true;  ///< judge those of the built-in library, too, that the files use
};
/// Limit for automatic judgement, which would take minutes beyond it.
inline constexpr std::size_t kMostProved = 300;

struct CheckedRules {
  RuleSet rules;
  AnalysisReport report;
  bool analysed = true;
  std::map<RuleId, RuleJudgement> judgements;  ///< empty if not requested
  bool judgements_left_out = false;            ///< requested for more than kMostProved rules
  std::vector<std::string> files;              ///< as named by the user
  Diagnostics failing = {};                    ///< tests of these files
  /// Returns the warnings of loading, then the findings, each with its graph as a note, then rules
  /// that change numbers.
  [[nodiscard]] Diagnostics warnings() const;
  [[nodiscard]] Diagnostics judgement_warnings() const;
};

/// Parts that concern the files that a user named: without the built-in library that they use,
/// unless they are part of it.
struct OwnParts {
  Table table;  ///< check_table() without the library's rows
  Diagnostics warnings;
  std::vector<std::string> scope;  ///< scope_lines() of rules that are not the library's
  std::size_t rows = 0;            ///< rows left out
  std::size_t left_out = 0;        ///< warnings left out
};
[[nodiscard]] OwnParts own_parts(const CheckedRules& checked);

/// Returns a warning for each test of a file that fails: PW1156, with its first line.
[[nodiscard]] Diagnostics failing_tests(const RuleSet& rules, const std::vector<SourceId>& sources);
/// Loads and checks the files; fails with all mistakes at once.
Result<CheckedRules> check_rule_files(const ContextPtr& context, const CheckRequest& request,
                                      const Log& log = {});

/// Returns rules with their proof verdicts, passes, pipelines, params, and findings.
[[nodiscard]] Table check_table(const CheckedRules& checked);
/// Returns a summary such as "196 of 204 rules are proved to keep the numbers", or why there is
/// none; empty if not requested.
[[nodiscard]] std::string proofs_line(const CheckedRules& checked);
/// Returns the limits of the analysis, one line each.
[[nodiscard]] std::vector<std::string> scope_lines(const AnalysisReport& report);
/// Returns a rule file with the findings' graphs as tests.
[[nodiscard]] std::string finding_tests(const AnalysisReport& report,
                                        const std::vector<std::string>& files);
/// Returns the rules ordered so that each follows those that enable it.
[[nodiscard]] Table order_table(const RuleSet& rules);
[[nodiscard]] std::string order_dot(const RuleSet& rules);

/// Returns rows, each with its `kind`: the contents of the files, rules with their verdicts,
/// findings, limits of the analysis, and a `summary`.
[[nodiscard]] std::string check_to_json(const CheckedRules& checked);
/// Returns rows of kind `error` for files that do not load, and a `summary`.
[[nodiscard]] std::string mistakes_to_json(const Diagnostics& mistakes, const SourceMap& sources);

/// Returns a `use` line for a rule file that is valid in any folder, or, shorter, in `folder`.
[[nodiscard]] std::string use_line(const std::string& file);
[[nodiscard]] std::string use_line_in(const std::string& folder, const std::string& file);
/// Replaces the lines of use_line() by those of the folder of `path`.
[[nodiscard]] std::string with_relative_uses(std::string text,
                                             const std::vector<std::string>& files,
                                             const std::string& path);

}  // namespace pw
