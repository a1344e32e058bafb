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

Diagnostic warning_of(Span span, std::string_view code, std::string message, std::string help) {
  Diagnostic out = error_at(span, code, std::move(message), std::move(help));
  out.severity = Severity::warning;
  return out;
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
