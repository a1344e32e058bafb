#include "rewriter/analysis/analysis.hpp"

#include "rewriter/analysis/checks.hpp"

namespace pw {

std::string_view name(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::overlap: return "overlap";
    case Finding::Kind::shadow: return "shadow";
    case Finding::Kind::loop: return "loop";
  }
  return "?";
}

AnalysisReport analyse(const RuleSet& rules, const Env& params) {
  AnalysisReport out;
  out.passes = rule_passes(rules).size();
  Analysis analysis(rules, params, out);
  find_shadows(analysis);
  find_overlaps(analysis);
  find_loops(analysis);
  return out;
}

}  // namespace pw
