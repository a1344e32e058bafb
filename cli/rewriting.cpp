// Exports the running of pipelines, its tables, and Trace.
#include "cli/rewriting.hpp"

#include <cctype>

#include <fmt/format.h>

#include "backends/cache/digest.hpp"
#include "base/file.hpp"
#include "cli/commands.hpp"

namespace pw::cli {
namespace {

const Strategy& strategy_named(const Session& session, const LoadedRules& rules,
                               const std::string& pipeline) {
  if (pipeline.empty())
    session.die("no pipeline is named",
                "for example -p o2; `pwr check` lists the pipelines of a rule file", kUsage);
  if (const Strategy* strategy = rules.set.strategy(pipeline)) return *strategy;
  std::vector<std::string> names;
  for (const auto& [name, strategy] : rules.set.pipelines) names.push_back(name);
  for (const auto& [name, strategy] : rules.set.passes) names.push_back(name);
  std::string near = nearest(pipeline, names);
  session.die("there is no pipeline, pass or rule `" + pipeline + "`",
              near.empty() ? "load the file that has it with -r" : "did you mean `" + near + "`?",
              kUsage);
}

/// A pass as a part of a file's name: a long one ends in a digest, so that two stay apart.
std::string file_name(const std::string& pass) {
  constexpr std::size_t kMostBytes = 60, kDigest = 8;
  std::string name;
  for (char c : pass)
    name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ? c : '_';
  if (name.size() <= kMostBytes) return name;
  return name.substr(0, kMostBytes - kDigest - 1) + "-" + sha256(pass).substr(0, kDigest);
}

}  // namespace

RewriteReport rewritten(const Session& session, Graph& graph, const LoadedRules& rules,
                        const std::string& pipeline, const RewriteOptions& options) {
  if (!strategy_named(session, rules, pipeline).ranges.empty())
    session.die("`" + pipeline + "` makes a graph for each range of tokens, and this takes one",
                "`pwr opt` writes one file a range, which can be used here", kUsage);
  RewriteReport report =
      session.need(run_pipeline(graph, rules.set, pipeline, rules.params, options));
  report_warnings(session, report, false);
  return report;
}

std::vector<RangedResult> rewritten_variants(const Session& session, const Graph& graph,
                                             const LoadedRules& rules, const std::string& pipeline,
                                             const OptionsFor& options) {
  strategy_named(session, rules, pipeline);
  std::vector<RangedResult> out;
  for (TokenRange range : session.need(token_ranges(graph, rules.set, pipeline))) {
    const std::string name =
        variant_name(rules, pipeline, {range, {}, false, Graph(session.context), {}});
    std::vector<RangedResult> some =
        session.need(run_range(graph, rules.set, pipeline, rules.params, range, options(name)));
    std::move(some.begin(), some.end(), std::back_inserter(out));
  }
  return out;
}

std::string variant_name(const LoadedRules& rules, const std::string& pipeline,
                         const RangedResult& variant) {
  const Strategy* strategy = rules.set.strategy(pipeline);
  const bool ranged = strategy != nullptr && !strategy->ranges.empty();
  std::string out = ranged ? fmt::format("{}-{}", variant.range.min, variant.range.max) : "";
  if (!variant.otherwise) return out;
  return out + (ranged ? ".otherwise" : "otherwise");
}

std::string variant_path(const std::string& path, const std::string& variant) {
  if (variant.empty()) return path;
  const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool extension = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  return extension ? path.substr(0, dot) + "." + variant + path.substr(dot) : path + "." + variant;
}

void say_conditions(const Session& session, const RangedResult& variant,
                    const std::string& otherwise) {
  std::string all;
  for (const Condition& condition : variant.conditions)
    all += (all.empty() ? "" : ", ") + condition.text;
  session.say(fmt::format("tokens {}..{}: right for steps where {}; {} is for the others",
                          variant.range.min, variant.range.max, all, otherwise));
}

void report_warnings(const Session& session, const RewriteReport& report, bool idle) {
  Diagnostics shown;
  for (const Diagnostic& warning : report.warnings)
    if (idle || !is_idle_warning(warning)) shown.push_back(warning);
  session.report(shown);
}

Table joined(const std::vector<std::pair<std::string, Table>>& tables) {
  bool named = false;
  for (const auto& [name, table] : tables) named = named || !name.empty();
  if (!named && tables.size() == 1) return tables.front().second;
  std::vector<std::string> columns{"tokens"};
  if (!tables.empty())
    columns.insert(columns.end(), tables.front().second.columns().begin(),
                   tables.front().second.columns().end());
  Table out(columns);
  for (const auto& [name, table] : tables) {
    for (std::vector<std::string> row : table.rows()) {
      row.insert(row.begin(), name);
      out.add(std::move(row));
    }
  }
  return out;
}

Table pass_table(const RewriteReport& report, bool times) {
  std::vector<std::string> columns{"pass", "rewrites", "nodes before", "nodes after", "stopped by"};
  if (times) columns.push_back("time");
  Table table(columns);
  for (const PassStats& pass : report.passes) {
    std::vector<std::string> row{
        pass.pass, std::to_string(pass.rewrites), std::to_string(pass.nodes_before),
        std::to_string(pass.nodes_after),
        pass.skipped ? "skipped: when is false" : std::string(name(pass.stop))};
    if (times) row.push_back(seconds(pass.seconds));
    table.add(std::move(row));
  }
  return table;
}

Table rule_table(const RewriteReport& report, bool times) {
  bool timed = false;
  for (const PassStats& pass : report.passes)
    for (const auto& [rule, stats] : pass.rules) timed = timed || (times && stats.seconds > 0);
  std::vector<std::string> columns{"pass", "rule", "matches", "attempts", "hits", "rejected by"};
  if (timed) columns.push_back("time");
  Table table(columns);
  for (const PassStats& pass : report.passes) {
    for (const auto& [rule, stats] : pass.rules) {
      std::string rejections;
      for (const auto& [code, count] : stats.rejections)
        rejections += fmt::format("{}{} × {}", rejections.empty() ? "" : ", ", code, count);
      std::vector<std::string> row{pass.pass,
                                   rule,
                                   std::to_string(stats.matches),
                                   std::to_string(stats.attempts),
                                   std::to_string(stats.hits),
                                   rejections};
      if (timed) row.push_back(seconds(stats.seconds));
      table.add(std::move(row));
    }
  }
  return table;
}

Trace::Trace(const Session& session, std::string folder)
    : session_(session), folder_(std::move(folder)) {
  if (!folder_.empty()) make_folder(session_, folder_);
}

void Trace::add(const std::string& pass, const Graph& graph) {
  save(session_, graph, fmt::format("{}/{:02}-{}.pwg", folder_, count_++, file_name(pass)));
}

void Trace::finish(const RewriteReport& report, const Graph& graph, const RuleSet& rules) {
  session_.need(
      write_file(folder_ + "/journal.jsonl", journal_to_json_lines(report.journal, graph, rules)));
  session_.say(fmt::format("{} graphs and the journal are in {}", count_, folder_));
}

}  // namespace pw::cli
