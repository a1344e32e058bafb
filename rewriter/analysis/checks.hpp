// The parts of the analysis, and the state they share; each adds its findings.
#pragma once

#include <set>

#include "dsl/rule_index.hpp"
#include "rewriter/analysis/analysis.hpp"
#include "rewriter/analysis/passes.hpp"
#include "rewriter/analysis/reach.hpp"

namespace pw {

struct Analysis {
  Analysis(const RuleSet& all, const Env& values, AnalysisReport& report)
      : rules(all), params(values), out(report), ops(ops_of_rules(all)), index(all) {}

  /// Notes a line once.
  void note_not_analysed(std::vector<std::string> names, const std::string& line) {
    if (noted_.insert(line).second) out.not_analysed.push_back({std::move(names), line});
  }
  [[nodiscard]] Reach reach(const std::vector<RuleId>& ids) const { return {rules, ops, ids}; }

  const RuleSet& rules;
  const Env& params;
  AnalysisReport& out;
  const IdVec<RuleId, RuleOps> ops;
  const RuleIndex index;

 private:
  std::set<std::string> noted_;
};

void find_shadows(Analysis& analysis);
void find_overlaps(Analysis& analysis);
void find_loops(Analysis& analysis);

}  // namespace pw
