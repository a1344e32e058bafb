// Exports check_rule_files, and what is shown of rule files.
#include "pipeline/checking.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "rewriter/analysis/enables.hpp"
#include "verify/traits.hpp"

namespace pw {
namespace {

Diagnostic with_test(const Finding& finding) {
  Diagnostic out = finding.diagnostic;
  if (!finding.test.empty())
    out.notes.push_back("as a test:\n" +
                        finding.test.substr(0, finding.test.find_last_not_of('\n') + 1));
  return out;
}

}  // namespace

Diagnostics CheckedRules::warnings() const {
  Diagnostics out = rules.warnings;
  for (const Finding& finding : report.findings) out.push_back(with_test(finding));
  return out;
}

Result<CheckedRules> check_rule_files(const ContextPtr& context, const CheckRequest& request) {
  RuleSet rules = PW_TRY(load_rules(context, request.files));
  PW_TRY(refuse_false_traits(rules));
  AnalysisReport report;
  if (request.analyse) report = analyse(rules, PW_TRY(bind_params(rules, {})));
  return CheckedRules{std::move(rules), std::move(report), request.analyse};
}

Table check_table(const CheckedRules& checked) {
  const RuleSet& set = checked.rules;
  Table table({"kind", "name", "of"});
  for (const Rule& rule : set.rules)
    table.add({rule.frontier ? "frontier" : "rule", rule.name,
               fmt::format("{} nodes → {}", rule.nodes.size(), rule.replacement.size())});
  for (const auto& [name, pass] : set.passes) table.add({"pass", name, ""});
  for (const auto& [name, pipeline] : set.pipelines)
    table.add({"pipeline", name, fmt::format("{} steps", pipeline.parts.size())});
  for (const auto& [name, param] : set.params)
    table.add({"param", name, set.context->attributes.print(param.value)});
  for (const Finding& finding : checked.report.findings)
    table.add({std::string(name(finding.kind)), fmt::format("{}", fmt::join(finding.rules, ", ")),
               finding.diagnostic.message});
  return table;
}

std::vector<std::string> scope_lines(const AnalysisReport& report) {
  std::vector<std::string> out;
  for (const NotAnalysed& some : report.not_analysed) out.push_back("not analysed: " + some.line);
  if (report.left_out > 0)
    out.push_back(fmt::format("{} pairs of rules were looked at, {} more were left out",
                              report.pairs, report.left_out));
  return out;
}

std::string finding_tests(const AnalysisReport& report, const std::vector<std::string>& files) {
  std::string text = "// Graphs that show what `pwr check` warned of.\n\n";
  for (const std::string& file : files) text += use_line(file);
  for (const Finding& finding : report.findings)
    if (!finding.test.empty()) text += "\n" + finding.test;
  return text;
}

Table order_table(const RuleSet& rules) {
  const Enables enables = find_enables(rules, all_rules(rules));
  Table table({"step", "rule", "in a cycle", "enables"});
  for (const Enables::Entry& entry : enables.rules) {
    std::vector<std::string> edges;
    for (const auto& edge : entry.edges)
      edges.push_back(
          fmt::format("{} ({})", enables.rules[edge.to].name, fmt::join(edge.ops, ", ")));
    table.add(
        {entry.step, entry.name, yes_cell(entry.in_cycle, "no"), list_cell(std::move(edges))});
  }
  return table;
}

std::string order_dot(const RuleSet& rules) {
  return enables_to_dot(find_enables(rules, all_rules(rules)));
}

std::string use_line(const std::string& file) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(file, ignored);  // else a name of the library
  return fmt::format("use {}\n",
                     quote(there ? std::filesystem::absolute(file, ignored).string() : file));
}

}  // namespace pw
