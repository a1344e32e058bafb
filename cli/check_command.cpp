// Exports the command check.
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "cli/checking.hpp"
#include "cli/commands.hpp"
#include "rewriter/analysis/analysis.hpp"
#include "rewriter/analysis/enables.hpp"
#include "verify/traits.hpp"

namespace pw::cli {
namespace {

struct CheckArgs {
  std::vector<std::string> files;
  std::string format, tests;
  bool no_analysis = false, order = false;
};

/// The rules in an order in which each stands behind those that build what it matches.
void print_order(const RuleSet& set, const std::string& format) {
  const Enables enables = find_enables(set, all_rules(set));
  if (format == "dot") {
    print_out(enables_to_dot(enables));
    return;
  }
  Table table({"step", "rule", "in a cycle", "enables"});
  for (const Enables::Entry& entry : enables.rules) {
    std::string edges;
    for (const auto& edge : entry.edges)
      edges += fmt::format("{}{} ({})", edges.empty() ? "" : ", ", enables.rules[edge.to].name,
                           fmt::join(edge.ops, ", "));
    table.add({std::to_string(entry.step), entry.name, entry.in_cycle ? "yes" : "no", edges});
  }
  print_out(table.print(format));
}

Table contents(const Session& session, const RuleSet& set) {
  Table table({"kind", "name", "of"});
  for (const Rule& rule : set.rules)
    table.add({rule.frontier ? "frontier" : "rule", rule.name,
               fmt::format("{} nodes → {}", rule.nodes.size(), rule.replacement.size())});
  for (const auto& [name, pass] : set.passes) table.add({"pass", name, ""});
  for (const auto& [name, pipeline] : set.pipelines)
    table.add({"pipeline", name, fmt::format("{} steps", pipeline.parts.size())});
  for (const auto& [name, param] : set.params)
    table.add({"param", name, session.context->attributes.print(param.value)});
  return table;
}

Table with_findings(Table table, const AnalysisReport& report) {
  for (const Finding& finding : report.findings)
    table.add({std::string(name(finding.kind)), fmt::format("{}", fmt::join(finding.rules, ", ")),
               finding.diagnostic.message});
  return table;
}

Diagnostics warnings_of(const AnalysisReport& report) {
  Diagnostics out;
  for (const Finding& finding : report.findings) {
    out.push_back(finding.diagnostic);
    if (!finding.test.empty())
      out.back().notes.push_back("as a test:\n" +
                                 finding.test.substr(0, finding.test.find_last_not_of('\n') + 1));
  }
  return out;
}

void save_tests(const Session& session, const CheckArgs& args, const AnalysisReport& report) {
  std::string text = "// Graphs that show what `pwr check` warned of.\n\n";
  for (const std::string& file : args.files) text += use_line(file);
  for (const Finding& finding : report.findings)
    if (!finding.test.empty()) text += "\n" + finding.test;
  session.need(write_file(args.tests, text));
}

void say_scope(const Session& session, const AnalysisReport& report) {
  for (const NotAnalysed& some : report.not_analysed) session.say("not analysed: " + some.line);
  if (report.left_out > 0)
    session.say(fmt::format("{} pairs of rules were looked at, {} more were left out", report.pairs,
                            report.left_out));
}

void run_check(const Options& options, const CheckArgs& args) {
  Session session(options);
  const std::string& format = args.format.empty() ? options.format : args.format;
  Result<RuleSet> loaded = load_rules(session.context, args.files);
  if (loaded)
    if (auto sound = refuse_false_traits(*loaded); !sound) loaded = forward(sound);
  if (!loaded && format == "json")
    print_out(mistakes_to_json(loaded.error(), session.context->sources));
  RuleSet set = session.need(std::move(loaded));
  if (args.order) return print_order(set, format);
  AnalysisReport report;
  if (!args.no_analysis) report = analyse(set, session.need(bind_params(set, {})));
  Diagnostics warnings = warnings_of(report);
  warnings.insert(warnings.begin(), set.warnings.begin(), set.warnings.end());
  session.report(warnings);
  if (!args.tests.empty()) save_tests(session, args, report);
  const CheckedRules checked{set, report, set.warnings, !args.no_analysis};
  print_out(format == "json" ? check_to_json(checked, *session.context)
                             : with_findings(contents(session, set), report).print(format));
  say_scope(session, report);
  session.say(fmt::format("{} rules, {} passes, {} pipelines, {} ops, {} warnings",
                          set.rules.size(), set.passes.size(), set.pipelines.size(),
                          session.context->ops.size(), warnings.size()));
}

}  // namespace

std::string use_line(const std::string& file) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(file, ignored);  // else a name of the library
  return fmt::format("use {}\n",
                     quote(there ? std::filesystem::absolute(file, ignored).string() : file));
}

void add_check_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<CheckArgs>();
  auto* sub = app.add_subcommand("check",
                                 "Read rule files, report every mistake, and list what is in them");
  sub->add_option("files", args->files, "rule files (.pwr)")->required();
  sub->add_flag("--no-analysis", args->no_analysis,
                "do not look for rules that want the same nodes, rules that never fire, and passes "
                "that may not end");
  sub->add_flag("--order", args->order,
                "print the rules in the order in which they enable each other, and nothing else");
  sub->add_option("--tests", args->tests, "write the graphs of the warnings as tests, to run them")
      ->type_name("FILE");
  sub->add_option("--format", args->format, "table, json or csv; with --order also dot")
      ->check(CLI::IsMember({"table", "json", "csv", "dot"}));
  sub->footer(
      "Examples:\n  pwr check my_rules.pwr\n  pwr check my_rules.pwr --tests found.pwr && pwr test "
      "found.pwr\n  pwr check my_rules.pwr --order --format dot | dot -Tsvg > rules.svg");
  sub->callback([args, &options] { run_check(options, *args); });
}

}  // namespace pw::cli
