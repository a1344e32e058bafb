#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/counted.hpp"
#include "base/printable.hpp"
#include "pipeline/check/check.hpp"
#include "pipeline/report/diagnostics.hpp"
#include "rewriter/analysis/passes.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

std::string place_of(const Diagnostic& diagnostic, const SourceMap& sources) {
  return diagnostic.span.valid() ? sources.describe(diagnostic.span) : diagnostic.place;
}

void add_diagnostic(Json& row, const Diagnostic& diagnostic, const SourceMap& sources) {
  row["code"] = diagnostic.code;
  row["place"] = place_of(diagnostic, sources);
  row["message"] = diagnostic.message;
  row["help"] = diagnostic.help;
}

Json diagnostic_row(const Diagnostic& diagnostic, const SourceMap& sources) {
  Json row{{"kind", name(diagnostic.severity)}, {"name", diagnostic.code}};
  add_diagnostic(row, diagnostic, sources);
  return row;
}

std::string printed_rows(const Json& rows) {
  std::string out = "[";
  for (std::size_t i = 0; i < rows.size(); ++i)
    out +=
        (i == 0 ? "\n  " : ",\n  ") + rows[i].dump(-1, ' ', false, Json::error_handler_t::replace);
  return printable_json(out + (rows.empty() ? "]\n" : "\n]\n"));
}

/// The worst verdict comes first.
std::string_view verdict_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::shadow: return "never_fires";
    case Finding::Kind::loop: return "may_not_end";
    case Finding::Kind::overlap: return "overlaps";
  }
  return "?";
}

class CheckRows {
 public:
  explicit CheckRows(const CheckedRules& checked)
      : checked_(checked), context_(*checked.rules.context), sources_(context_.sources) {
    for (const RulePass& pass : rule_passes(checked.rules))
      for (RuleId id : pass.strategy->rules) in_a_pass_.insert(written_name(rule(id)));
    for (const NotAnalysed& some : checked.report.not_analysed)
      for (const std::string& name : some.rules) in_part_[name].push_back(some.line);
    for (const Finding& finding : checked.report.findings)
      for (const std::string& name : finding.rules) found_[name].push_back(&finding);
  }

  Json all() {
    for (std::size_t i = 0; i < checked_.rules.rules.size(); ++i) add_rule(RuleId(i));
    add_others();
    for (const Finding& finding : checked_.report.findings) add_finding(finding);
    for (const Diagnostics& some :
         {checked_.rules.warnings, checked_.judgement_warnings(), checked_.failing})
      for (const Diagnostic& warning : some) rows_.push_back(diagnostic_row(warning, sources_));
    for (const NotAnalysed& some : checked_.report.not_analysed)
      rows_.push_back({{"kind", "not_analysed"},
                       {"name", fmt::format("{}", fmt::join(some.rules, ", "))},
                       {"rules", some.rules},
                       {"reason", some.line}});
    add_summary();
    return std::move(rows_);
  }

 private:
  [[nodiscard]] const Rule& rule(RuleId id) const { return checked_.rules.rules[id]; }

  /// Returns whether an empty result is conclusive; if not, the reason.
  [[nodiscard]] std::vector<std::string> reasons_against(const std::string& written) const {
    if (!checked_.analysed) return {"--no-analysis"};
    if (!in_a_pass_.contains(written)) return {"no greedy, walk or once contains it"};
    const auto known = in_part_.find(written);
    return known == in_part_.end() ? std::vector<std::string>() : known->second;
  }

  void add_rule(RuleId id) {
    const Rule& rule = checked_.rules.rules[id];
    const std::string written = written_name(rule);
    Json row{
        {"kind", rule.frontier ? "frontier" : "rule"},
        {"name", rule.name},
        {"of", fmt::format("{} → {}", counted(rule.nodes.size(), "node"), rule.replacement.size())},
        {"place", sources_.describe(rule.name_span)}};
    const std::vector<std::string> reasons = reasons_against(written);
    row["verdict"] = reasons.empty() ? "nothing_found" : "not_analysed";
    row["findings"] = Json::array();
    row["reasons"] = reasons;
    add_proof(row, id);
    if (const auto found = found_.find(written); found != found_.end())
      add_found(row, written, found->second);
    rows_.push_back(std::move(row));
  }

  /// Returns the verdict as `pwr verify` prints it.
  void add_proof(Json& row, RuleId id) const {
    const auto found = checked_.judgements.find(id);
    if (found == checked_.judgements.end()) return;
    const RuleJudgement& judgement = found->second;
    const RuleVerdict verdict = judgement.verdict;
    row["numbers"] = name(verdict);
    row["known_by"] = verdict == RuleVerdict::unknown ? Json() : Json(name(judgement.known));
    row["left_to_show"] = judgement.left_to_show();
  }

  static void add_found(Json& row, const std::string& written,
                        const std::vector<const Finding*>& found) {
    std::set<std::string_view> verdicts;
    for (const Finding* finding : found) {
      row["findings"].push_back({{"verdict", verdict_of(finding->kind)},
                                 {"code", finding->diagnostic.code},
                                 {"rules", finding->rules}});
      // The preferred rule fires; only the other one never does.
      const bool first = finding->kind == Finding::Kind::shadow && finding->rules.back() != written;
      verdicts.insert(verdict_of(first ? Finding::Kind::overlap : finding->kind));
    }
    for (const auto kind : {Finding::Kind::overlap, Finding::Kind::loop, Finding::Kind::shadow})
      if (verdicts.contains(verdict_of(kind))) row["verdict"] = verdict_of(kind);
  }

  void add_others() {
    for (const auto& [name, pass] : checked_.rules.passes)
      rows_.push_back({{"kind", "pass"}, {"name", name}, {"of", ""}});
    for (const auto& [name, pipeline] : checked_.rules.pipelines)
      rows_.push_back(
          {{"kind", "pipeline"}, {"name", name}, {"of", counted(pipeline.parts.size(), "step")}});
    for (const auto& [name, param] : checked_.rules.params)
      rows_.push_back(
          {{"kind", "param"}, {"name", name}, {"of", context_.attributes.print(param.value)}});
  }

  void add_finding(const Finding& finding) {
    Json row{{"kind", name(finding.kind)},
             {"name", fmt::format("{}", fmt::join(finding.rules, ", "))},
             {"of", finding.diagnostic.message},
             {"verdict", verdict_of(finding.kind)},
             {"rules", finding.rules}};
    add_diagnostic(row, finding.diagnostic, sources_);
    row["notes"] = finding.diagnostic.notes;
    row["test"] = finding.test;
    rows_.push_back(std::move(row));
  }

  void add_summary() {
    std::map<std::string, std::size_t> counts;
    for (const Json& row : rows_)
      if (row["kind"] == "rule") ++counts[row["verdict"].get<std::string>()];
    std::map<std::string, std::size_t> numbers;
    for (const auto& [rule, judgement] : checked_.judgements)
      ++numbers[std::string(name(judgement.verdict))];
    const AnalysisReport& report = checked_.report;
    rows_.push_back({{"kind", "summary"},
                     {"name", ""},
                     {"verdicts", counts},
                     {"numbers", numbers},
                     {"warnings", checked_.warnings().size()},
                     {"pairs", report.pairs},
                     {"pairs_left_out", report.left_out}});
  }

  const CheckedRules& checked_;
  const Context& context_;
  const SourceMap& sources_;
  std::set<std::string> in_a_pass_;
  std::map<std::string, std::vector<std::string>> in_part_;
  std::map<std::string, std::vector<const Finding*>> found_;
  Json rows_ = Json::array();
};

}  // namespace

std::string check_to_json(const CheckedRules& checked) {
  return printed_rows(CheckRows(checked).all());
}

std::string mistakes_to_json(const Diagnostics& mistakes, const SourceMap& sources) {
  Json rows = Json::array();
  std::size_t errors = 0;
  for (const Diagnostic& mistake : mistakes) {
    rows.push_back(diagnostic_row(mistake, sources));
    if (mistake.severity == Severity::error) ++errors;
  }
  rows.push_back({{"kind", "summary"}, {"name", ""}, {"errors", errors}});
  return printed_rows(rows);
}

}  // namespace pw
