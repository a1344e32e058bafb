// Exports page_of, text_of and write_report: the report of a run as a page and as text.
#include "base/file.hpp"
#include "base/printable.hpp"
#include "cli/report_sections.hpp"
#include "cli/running.hpp"

namespace pw::cli {

std::string page_of(const Session& session, const RunRecord& record, const RuleSet& rules) {
  session.progress("drawing");
  const Report report = make_report(session, record, rules, false);
  const Journal journal =
      record.times ? record.rewrite.journal : without_times(record.rewrite.journal);
  VizInput input;
  input.versions = record.versions;
  input.pieces = &*record.pieces;
  input.plan = &record.plan;
  input.journal = &journal;
  input.rules = &rules;
  input.report = &report;
  return session.need(render_html(input));
}

std::string text_of(const Session& session, const RunRecord& record, const RuleSet& rules) {
  Report report = make_report(session, record, rules, true);
  VizInput input;
  input.versions = record.versions;
  input.pieces = &*record.pieces;
  VizOptions options;
  if (record.versions.size() > 1) options.against = 0;
  report.sections.push_back(
      {"Graph", {ReportText{{session.need(render_outline(input, options))}, true}}});
  return printable_lines(report_text(report));
}

std::string write_report(const Session& session, const RunRecord& record, const RuleSet& rules,
                         const std::string& folder) {
  make_folder(session, folder);
  const Graph& after = record.versions.back().graph;
  session.need(write_file(folder + "/plan.json", plan_to_json(record.plan, *record.pieces)));
  session.need(
      write_file(folder + "/journal.jsonl",
                 journal_to_json_lines(record.rewrite.journal, after, rules, record.times)));
  session.need(write_file(folder + "/report.txt", text_of(session, record, rules)));
  session.need(write_file(folder + "/report.html", page_of(session, record, rules)));
  return folder + "/report.html";
}

}  // namespace pw::cli
