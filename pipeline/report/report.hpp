// The report of a run, as a page with the graphs of all passes and as text.
#pragma once

#include <string>

#include "pipeline/log.hpp"
#include "pipeline/run/record.hpp"

namespace pw {

Result<std::string> page_of(const RunRecord& record, const LoadedRules& rules, const Log& log);
Result<std::string> text_of(const RunRecord& record, const RuleSet& rules);
/// Returns the report as Markdown, with a listing of the graph.
Result<std::string> markdown_of(const RunRecord& record, const RuleSet& rules);
/// Returns the report as `piecewise.report/1`; see docs/formats.md.
std::string json_of(const RunRecord& record, const RuleSet& rules);
/// Writes report.html, report.txt, report.json, plan.json, and journal.jsonl; returns the path of
/// report.html.
Result<std::string> write_report(const RunRecord& record, const LoadedRules& rules,
                                 const std::string& folder, const Log& log);

}  // namespace pw
