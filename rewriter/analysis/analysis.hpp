// Analysis of a rule set without a graph: rules that compete for nodes, rules that never fire,
// passes that may not end. Deterministic, with bounded work.
#pragma once

#include <string>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

/// One finding, with a graph that shows it if one could be made.
struct Finding {
  enum class Kind : std::uint8_t { overlap, shadow, loop } kind = Kind::overlap;
  std::vector<std::string> rules;  ///< as written
  Diagnostic diagnostic;           ///< a warning, without the graph
  std::string test;                ///< text of a `test`, and of the pass it applies if need be
};
std::string_view name(Finding::Kind kind);

/// Rules, as written, that were analysed only in part.
struct NotAnalysed {
  std::vector<std::string> rules;
  std::string line;  ///< "`rule`: why"
};

struct AnalysisReport {
  std::vector<Finding> findings;
  std::size_t passes = 0, pairs = 0;  ///< analysed
  std::size_t left_out = 0;           ///< pairs of variants that were skipped
  std::vector<NotAnalysed> not_analysed;
};
AnalysisReport analyse(const RuleSet& rules, const Env& params);

}  // namespace pw
