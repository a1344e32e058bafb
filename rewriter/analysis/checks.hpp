// The parts of the analysis; each adds what it finds.
#pragma once

#include "rewriter/analysis/analysis.hpp"
#include "rewriter/analysis/passes.hpp"

namespace pw {

void find_shadows(const RuleSet& rules, const Env& params, AnalysisReport& out);
void find_overlaps(const RuleSet& rules, const Env& params, AnalysisReport& out);
void find_loops(const RuleSet& rules, const Env& params, AnalysisReport& out);

Diagnostic warning_of(Span span, std::string_view code, std::string message, std::string help);

}  // namespace pw
