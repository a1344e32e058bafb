// A pass is idle if it ran without rewriting; a rule is idle if it never fired in passes that
// rewrote something. Rules are grouped by their reported name over all passes, so that variants of
// one family give one warning.
#include "rewriter/engine/idle.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {
namespace {

constexpr std::string_view kIdlePass = "PW1110", kIdleRule = "PW1111";

/// Returns the name under which a rule is reported: its group or family, else its own name.
std::string reported_name(const Rule& rule) {
  if (!rule.group.empty()) return rule.group + ".*";
  return rule.base_name.empty() ? rule.name : rule.base_name;
}

/// Totals over all passes of the rules with one reported name.
struct Tried {
  Span span;
  RuleStats stats;
  bool in_working_pass = false;
};

void add(RuleStats& to, const RuleStats& from) {
  to.attempts += from.attempts;
  to.hits += from.hits;
  to.matches += from.matches;
  for (const auto& [code, count] : from.rejections) to.rejections[code] += count;
}

/// Returns the attempts and the most frequent rejections as text.
std::string why(const RuleStats& stats) {
  if (stats.attempts == 0) return "no node of the graph has the op its pattern starts from";
  std::vector<std::pair<std::string, std::size_t>> codes(stats.rejections.begin(),
                                                         stats.rejections.end());
  std::stable_sort(codes.begin(), codes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string list;
  for (const auto& [code, count] : codes)
    list += fmt::format("{}{} × {}", list.empty() ? "" : ", ", code, count);
  return fmt::format("tried {} time{}{}{}", stats.attempts, stats.attempts == 1 ? "" : "s",
                     list.empty() ? "" : ", rejected by ", list);
}

/// Returns the rules that ran, by name. Most rule sets have many other rules. Layouts prepared
/// before a frontier was opened are ignored.
std::map<std::string, const Rule*> rules_that_ran(const RunState& run) {
  std::map<std::string, const Rule*> out;
  for (const auto& [id, prepared] : run.prepared) out.emplace(run.rules[id].name, &run.rules[id]);
  const auto known = [&](const PassStats& pass) {
    return std::all_of(pass.rules.begin(), pass.rules.end(),
                       [&](const auto& entry) { return out.contains(entry.first); });
  };
  if (std::ranges::all_of(run.report.passes, known)) return out;
  for (std::size_t i = 0; i < run.rules.size(); ++i)
    out.emplace(run.rules[RuleId(i)].name, &run.rules[RuleId(i)]);
  return out;
}

}  // namespace

void warn_of_idle(RunState& run) {
  std::map<std::string, Tried> tried;
  std::map<std::string, std::size_t> rewrites;
  const std::map<std::string, const Rule*> rules = rules_that_ran(run);
  for (const PassStats& pass : run.report.passes) {
    if (pass.skipped || pass.stop == StopReason::undone) continue;
    rewrites[pass.pass] += pass.rewrites;
    for (const auto& [name, stats] : pass.rules) {
      const auto rule = rules.find(name);
      if (rule == rules.end()) continue;
      Tried& entry = tried[reported_name(*rule->second)];
      if (!entry.span.valid()) entry.span = rule->second->name_span;
      add(entry.stats, stats);
      entry.in_working_pass = entry.in_working_pass || pass.rewrites > 0;
    }
  }
  for (const auto& [name, count] : rewrites)
    if (count == 0)
      run.report.warnings.push_back(warning_at(run.pass_spans[name], kIdlePass,
                                               fmt::format("pass `{}` changed nothing", name)));
  for (const auto& [name, entry] : tried) {
    if (entry.stats.matches > 0 || !entry.in_working_pass) continue;
    Diagnostic warning = warning_at(entry.span, kIdleRule, fmt::format("`{}` never fired", name));
    if (run.options.stats) warning.notes.push_back(why(entry.stats));
    run.report.warnings.push_back(std::move(warning));
  }
}

bool is_idle_warning(const Diagnostic& warning) {
  return warning.code == kIdlePass || warning.code == kIdleRule;
}

}  // namespace pw
