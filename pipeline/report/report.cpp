#include "pipeline/report/report.hpp"

#include "base/io/file.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "pipeline/explain.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/report/report_diff.hpp"
#include "pipeline/report/report_sections.hpp"

namespace pw {

Result<std::string> page_of(const RunRecord& record, const LoadedRules& rules, const Log& log) {
  log.progress({"drawing"});
  const Report report = make_report(record, rules.set, false);
  const Journal journal =
      record.times ? record.rewrite.journal : without_times(record.rewrite.journal);
  const PageMisses misses = near_misses_of(record.versions.back().graph, rules, record.versions);
  VizInput input;
  input.misses = &misses;
  input.versions = record.versions;
  input.pieces = &*record.pieces;
  input.plan = &record.plan;
  input.journal = &journal;
  input.tried = &record.rewrite.passes;
  input.rules = &rules.set;
  input.report = &report;
  VizOptions options;
  options.progress = progress_to(log, "the page");
  return render_html(input, options);
}

namespace {

/// With the graph at its end.
Result<Report> whole_report(const RunRecord& record, const RuleSet& rules) {
  Report report = make_report(record, rules, true);
  VizInput input;
  input.versions = record.versions;
  input.pieces = &*record.pieces;
  VizOptions options;
  if (record.versions.size() > 1) options.against = 0;
  report.sections.push_back(
      {"Graph", {ReportText{{PW_TRY(render_outline(input, options))}, true}}});
  return report;
}

}  // namespace

Result<std::string> text_of(const RunRecord& record, const RuleSet& rules) {
  return printable_lines(report_text(PW_TRY(whole_report(record, rules))));
}

Result<std::string> markdown_of(const RunRecord& record, const RuleSet& rules) {
  return printable_lines(report_markdown(PW_TRY(whole_report(record, rules))));
}

std::string json_of(const RunRecord& record, const RuleSet& rules) {
  return printable_json(report_to_json(make_report(record, rules, true)));
}

Result<std::string> write_report(const RunRecord& record, const LoadedRules& rules,
                                 const std::string& folder, const Log& log) {
  PW_TRY(make_folder(folder));
  const Graph& after = record.versions.back().graph;
  PW_TRY(write_file(folder + "/plan.json", plan_to_json(record.plan, *record.pieces)));
  PW_TRY(write_file(folder + "/journal.jsonl",
                    journal_to_json_lines(record.rewrite.journal, after, rules.set, record.times)));
  PW_TRY(write_file(folder + "/report.txt", PW_TRY(text_of(record, rules.set))));
  PW_TRY(write_file(folder + "/report.json", json_of(record, rules.set)));
  PW_TRY(write_file(folder + "/report.html", PW_TRY(page_of(record, rules, log))));
  return folder + "/report.html";
}

}  // namespace pw
