// Exports the commands about rules themselves: check, fmt, test, verify.
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"

namespace pw::cli {
namespace {

struct CheckArgs {
  std::vector<std::string> files;
};

void run_check(const Options& options, const CheckArgs& args) {
  Session session(options);
  RuleSet set = session.need(load_rules(session.context, args.files));
  session.report(set.warnings);
  Table table({"kind", "name", "of"});
  for (const Rule& rule : set.rules) table.add({"rule", rule.name, fmt::format("{} nodes → {}", rule.nodes.size(), rule.replacement.size())});
  for (const auto& [name, pass] : set.passes) table.add({"pass", name, ""});
  for (const auto& [name, pipeline] : set.pipelines) table.add({"pipeline", name, fmt::format("{} steps", pipeline.parts.size())});
  for (const auto& [name, param] : set.params) table.add({"param", name, session.context->attributes.print(param.value)});
  std::fputs(table.print(options.format).c_str(), stdout);
  session.say(fmt::format("{} rules, {} passes, {} pipelines, {} ops, {} warnings", set.rules.size(), set.passes.size(), set.pipelines.size(), session.context->ops.size(), set.warnings.size()));
}

struct FormatArgs {
  std::vector<std::string> files;
  bool check = false, to_stdout = false;
};

void run_format(const Options& options, const FormatArgs& args) {
  Session session(options);
  bool changed = false;
  for (const std::string& path : args.files) {
    std::string text = session.need(read_file(path));
    SourceId source = session.context->sources.add(path, text);
    ast::File file = session.need(parse_file(session.context->sources, source));
    std::string formatted = format_file(file, session.context->sources);
    bool differs = formatted != text;
    changed = changed || differs;
    if (args.to_stdout || path == "-") {
      std::fputs(formatted.c_str(), stdout);
    } else if (args.check) {
      if (differs) fmt::print("{}\n", path);
    } else if (differs) {
      session.need(write_file(path, formatted));
      session.say("formatted " + path);
    }
  }
  if (args.check && changed) throw Exit{kNegative};
}

}  // namespace

void add_rule_commands(CLI::App& app, const Options& options) {
  auto check = std::make_shared<CheckArgs>();
  auto* sub = app.add_subcommand("check", "Read rule files, report every mistake, and list what is in them");
  sub->add_option("files", check->files, "rule files (.pwr)")->required();
  sub->footer("Example:\n  pwr check my_rules.pwr");
  sub->callback([check, &options] { run_check(options, *check); });

  auto format = std::make_shared<FormatArgs>();
  sub = app.add_subcommand("fmt", "Lay out rule files in the one canonical way, in place");
  sub->add_option("files", format->files, "rule files (.pwr); - reads standard input and writes standard output")->required();
  sub->add_flag("--check", format->check, "change nothing; list the files that are not formatted and exit 1");
  sub->add_flag("--stdout", format->to_stdout, "print the result instead of writing the file");
  sub->footer("Examples:\n  pwr fmt rules/*.pwr\n  pwr fmt --check rules/*.pwr");
  sub->callback([format, &options] { run_format(options, *format); });
}

}  // namespace pw::cli
