#include "pipeline/check/check.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "dsl/embedded_rules.hpp"
#include "rewriter/analysis/enables.hpp"
#include "verify/test_runner.hpp"
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

std::map<RuleId, RuleJudgement> judgements_of(const LoadedRules& rules,
                                              const std::vector<RuleId>& judged, const Log& log) {
  note_missing_solver(log);
  RuleJudge judge(rules, {});
  std::map<RuleId, RuleJudgement> out;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    log.progress({"judging", i, judged.size(), "rules"});
    out.emplace(judged[i], judge.judge(judged[i]));
  }
  return out;
}

/// Returns the verdict on a rule and its evidence.
std::pair<std::string, std::string> verdict_cells(const CheckedRules& checked, RuleId rule) {
  const auto found = checked.judgements.find(rule);
  if (found == checked.judgements.end()) return {};
  const RuleJudgement& judgement = found->second;
  const bool unknown = judgement.verdict == RuleVerdict::unknown;
  return {std::string(name(judgement.verdict)), unknown ? "" : std::string(name(judgement.known))};
}

/// Returns the places that a diagnostic points at.
std::vector<Span> places_of(const Diagnostic& diagnostic) {
  std::vector<Span> out{diagnostic.span};
  for (const auto& secondary : diagnostic.secondary) out.push_back(secondary.span);
  return out;
}

/// Returns the sources of the files that the user named.
std::vector<SourceId> named_sources(const RuleSet& rules, const std::vector<std::string>& files) {
  std::vector<SourceId> out;
  for (const ast::File& file : rules.files)
    for (const std::string& path : files)
      if (std::filesystem::path(rules.context->sources.name(file.source)).lexically_normal() ==
          std::filesystem::path(path).lexically_normal())
        out.push_back(file.source);
  return out;
}

using Selection = std::function<bool(const std::vector<Span>&)>;

/// Returns a selection of places outside of the library; of all places if a named file is in it.
Selection outside_library(const RuleSet& set, const std::vector<std::string>& files) {
  const bool all = named_sources(set, files).size() < files.size();
  return [&set, all](const std::vector<Span>& spans) {
    return all || std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
             return !set.context->sources.name(span.source).starts_with(kLibrary);
           });
  };
}

}  // namespace

Diagnostics failing_tests(const RuleSet& rules, const std::vector<SourceId>& sources) {
  Diagnostics out;
  if (sources.empty()) return out;  // else all tests run
  const SourceMap& map = rules.context->sources;
  for (const TestResult& test : run_tests(rules, sources).tests) {
    if (test.passed()) continue;
    const TestFailure& first = test.failures.front();
    const std::string file = map.name(sources.front());
    out.push_back(warning_at(
        first.span, "PW1156", fmt::format("test `{}` fails: {}", test.name, first.message),
        file.starts_with("<") ? "" : fmt::format("`pwr test {}` prints the difference", file)));
  }
  return out;
}

Diagnostics CheckedRules::warnings() const {
  Diagnostics out = rules.warnings;
  for (const Finding& finding : report.findings) out.push_back(with_test(finding));
  for (Diagnostic& warning : judgement_warnings()) out.push_back(std::move(warning));
  out.insert(out.end(), failing.begin(), failing.end());
  return out;
}

Diagnostics CheckedRules::judgement_warnings() const {
  const std::string named = fmt::format("{}", fmt::join(files, " -r "));
  Diagnostics out;
  for (const auto& [rule, judgement] : judgements)
    for (Diagnostic& warning : verdict_warnings(rules, rule, judgement, named))
      out.push_back(std::move(warning));
  return out;
}

Result<CheckedRules> check_rule_files(const ContextPtr& context, const CheckRequest& request,
                                      const Log& log) {
  RuleSet rules = PW_TRY(load_rules(context, request.files));
  PW_TRY(refuse_false_traits(rules));
  AnalysisReport report;
  const Env params = PW_TRY(bind_params(rules, {}));
  if (request.analyse) report = analyse(rules, params);
  std::map<RuleId, RuleJudgement> judgements;
  const Selection selected = outside_library(rules, request.files);
  std::vector<RuleId> judged;
  for (std::size_t i = 0; i < rules.rules.size(); ++i)
    if (const Rule& rule = rules.rules[RuleId(i)];
        !rule.frontier && (request.library || selected({rule.span})))
      judged.emplace_back(i);
  const bool too_many = judged.size() > kMostProved;
  if (request.judge && !too_many) judgements = judgements_of({rules, params}, judged, log);
  Diagnostics failing;
  if (request.analyse) failing = failing_tests(rules, named_sources(rules, request.files));
  return CheckedRules{std::move(rules),      std::move(report),         request.analyse,
                      std::move(judgements), request.judge && too_many, request.files,
                      std::move(failing)};
}

namespace {

/// Returns the table of what is declared at, or found in, selected places.
Table selected_table(const CheckedRules& checked, const Selection& selected) {
  const RuleSet& set = checked.rules;
  const bool proved = !checked.judgements.empty();
  std::vector<Column> columns{"kind", "name", "of"};
  if (proved) columns.insert(columns.end(), {"numbers", "known by"});
  Table table(columns);
  const auto add = [&](const std::vector<Span>& spans, std::vector<Cell> row, RuleId rule = {}) {
    if (!selected(spans)) return;
    auto [numbers, known] = verdict_cells(checked, rule);
    if (proved) row.insert(row.end(), {Cell(std::move(numbers)), Cell(std::move(known))});
    table.add(std::move(row));
  };
  for (std::size_t i = 0; i < set.rules.size(); ++i) {
    const Rule& rule = set.rules[RuleId(i)];
    add({rule.span},
        {rule.frontier ? "frontier" : "rule", rule.name,
         fmt::format("{} → {}", counted(rule.nodes.size(), "node"), rule.replacement.size())},
        RuleId(i));
  }
  for (const auto& [name, pass] : set.passes) add({pass.span}, {"pass", name, ""});
  for (const auto& [name, pipeline] : set.pipelines)
    add({pipeline.span}, {"pipeline", name, counted(pipeline.parts.size(), "step")});
  for (const auto& [name, param] : set.params)
    add({param.span}, {"param", name, set.context->attributes.print(param.value)});
  for (const Finding& finding : checked.report.findings)
    add(places_of(finding.diagnostic),
        {std::string(name(finding.kind)), fmt::format("{}", fmt::join(finding.rules, ", ")),
         finding.diagnostic.message});
  return table;
}

}  // namespace

Table check_table(const CheckedRules& checked) {
  return selected_table(checked, [](const std::vector<Span>&) { return true; });
}

OwnParts own_parts(const CheckedRules& checked) {
  const Selection selected = outside_library(checked.rules, checked.files);
  std::size_t left_out = 0;
  OwnParts out{selected_table(checked,
                              [&](const std::vector<Span>& spans) {
                                const bool own = selected(spans);
                                left_out += own ? 0 : 1;
                                return own;
                              }),
               {},
               {}};
  out.rows = left_out;
  for (Diagnostic& warning : checked.warnings()) {
    if (selected(places_of(warning)))
      out.warnings.push_back(std::move(warning));
    else
      ++out.left_out;
  }
  AnalysisReport own = checked.report;
  std::erase_if(own.not_analysed, [&](const NotAnalysed& some) {
    std::vector<Span> spans;
    for (const std::string& name : some.rules)
      for (RuleId rule : checked.rules.resolve(name))
        spans.push_back(checked.rules.rules[rule].span);
    return !selected(spans);
  });
  out.scope = scope_lines(own);
  return out;
}

std::string proofs_line(const CheckedRules& checked) {
  if (checked.judgements_left_out)
    return fmt::format(
        "more than {} rules: use `pwr prove` to see which of them preserve the results",
        kMostProved);
  if (checked.judgements.empty()) return "";
  const auto proved = std::count_if(checked.judgements.begin(), checked.judgements.end(),
                                    [](const auto& entry) { return entry.second.complete(); });
  const bool one = proved == 1 || checked.judgements.size() == 1;
  return fmt::format("{} of {} {} proved to preserve the results", proved,
                     counted(checked.judgements.size(), "rule"), one ? "is" : "are");
}

std::vector<std::string> scope_lines(const AnalysisReport& report) {
  std::vector<std::string> out;
  for (const NotAnalysed& some : report.not_analysed) out.push_back("not analysed: " + some.line);
  if (report.left_out > 0)
    out.push_back(fmt::format("{} of rules were checked, {} more were skipped",
                              counted(report.pairs, "pair"), report.left_out));
  return out;
}

std::string finding_tests(const AnalysisReport& report, const std::vector<std::string>& files) {
  std::string text = "// Graphs that show the warnings of `pwr check`.\n\n";
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

std::string use_line_in(const std::string& folder, const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return use_line(file);
  const auto path = std::filesystem::relative(file, folder.empty() ? "." : folder, ignored);
  return path.empty() ? use_line(file) : fmt::format("use {}\n", quote(path.string()));
}

std::string with_relative_uses(std::string text, const std::vector<std::string>& files,
                               const std::string& path) {
  for (const std::string& file : files)
    if (const std::size_t at = text.find(use_line(file)); at != std::string::npos)
      text.replace(at, use_line(file).size(),
                   use_line_in(std::filesystem::path(path).parent_path().string(), file));
  return text;
}

}  // namespace pw
