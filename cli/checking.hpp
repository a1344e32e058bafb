// What the command check prints, as data.
#pragma once

#include <string>

#include "rewriter/analysis/analysis.hpp"

namespace pw::cli {

struct CheckedRules {
  const RuleSet& rules;
  const AnalysisReport& report;
  const Diagnostics& warnings;  ///< of loading
  bool analysed = true;
};

/// A list of rows, each with its `kind`: what is in the files, rules with their verdict; then what
/// was found, what was not analysed, and a `summary`.
[[nodiscard]] std::string check_to_json(const CheckedRules& checked, const Context& context);
/// Rows of the kind `error`, of files that do not load, and a `summary`.
[[nodiscard]] std::string mistakes_to_json(const Diagnostics& mistakes, const SourceMap& sources);

}  // namespace pw::cli
