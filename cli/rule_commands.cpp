// Exports the commands about rules themselves: check, fmt, verify; test is in test_command.cpp.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "verify/rule_check.hpp"

namespace pw::cli {
namespace {

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
      print_out(formatted);
    } else if (args.check) {
      if (differs) print_out(path + "\n");
    } else if (differs) {
      session.need(write_file(path, formatted));
      session.say("formatted " + path);
    }
  }
  if (args.check && changed) throw Exit{kNegative};
}

struct VerifyArgs {
  RuleOptions rules;
  std::vector<std::string> only;
  std::string ranks = "2,4";
};

/// How many boundary values of its guards a rule was seen to hold and to refuse at.
std::string guards_text(const RuleCheck& check) {
  if (check.held + check.refused + check.unreached.size() == 0) return "";
  std::string text = fmt::format("holds at {}, refuses {}", check.held, check.refused);
  for (std::size_t i = 0; i < check.unreached.size(); ++i)
    text += (i == 0 ? "; no graph at " : ", ") + check.unreached[i];
  return text;
}

std::string result_text(const RuleCheck& check) {
  if (!check.failures.empty()) return check.failures.front();
  return check.cannot_run.empty() ? "before ≡ after" : "cannot run: " + check.cannot_run;
}

void run_verify(const Options& options, const VerifyArgs& args) {
  Session session(options);
  LoadedRules rules = load(session, args.rules);
  std::vector<RuleId> ids;
  for (const std::string& name : args.only) {
    std::vector<RuleId> some = rules.set.resolve(name);
    if (some.empty())
      session.die("there is no rule `" + name + "`", "`pwr check` lists the rules of a file",
                  kUsage);
    std::copy_if(some.begin(), some.end(), std::back_inserter(ids),
                 [&](RuleId id) { return !rules.set.rules[id].frontier; });
  }
  if (args.only.empty())
    for (std::size_t i = 0; i < rules.set.rules.size(); ++i)
      if (!rules.set.rules[RuleId(i)].frontier) ids.push_back(RuleId(i));
  RuleCheckOptions check_options;
  check_options.ranks = session.need(parse_numbers(args.ranks, 1, 64), kUsage);
  Table table({"rule", "graphs", "ranks", "runs", "guards", "result"});
  std::size_t failed = 0, not_run = 0;
  for (RuleId id : ids) {
    session.progress("verifying " + rules.set.rules[id].name);
    RuleCheck check = check_rule(rules.set, id, rules.params, check_options);
    failed += !check.failures.empty();
    not_run += !check.cannot_run.empty();
    table.add({check.rule, std::to_string(check.instances),
               fmt::format("{}", fmt::join(check.ranks, ",")), std::to_string(check.runs),
               guards_text(check), result_text(check)});
  }
  print_out(table.print(options.format));
  session.say(fmt::format("{} rules verified, {} failed{}", ids.size() - failed - not_run, failed,
                          not_run > 0 ? fmt::format(", {} cannot run", not_run) : ""));
  if (failed > 0) throw Exit{kNegative};
  if (not_run > 0) throw Exit{kMissingCapability};
}

}  // namespace

void add_rule_commands(CLI::App& app, const Options& options) {
  add_check_command(app, options);
  add_fuzz_command(app, options);

  auto format = std::make_shared<FormatArgs>();
  auto* sub = app.add_subcommand("fmt", "Lay out rule files in the one canonical way, in place");
  sub->add_option("files", format->files,
                  "rule files (.pwr); - reads standard input and writes standard output")
      ->required();
  sub->add_flag("--check", format->check,
                "change nothing; list the files that are not formatted and exit 1");
  sub->add_flag("--stdout", format->to_stdout, "print the result instead of writing the file");
  sub->footer("Examples:\n  pwr fmt rules/*.pwr\n  pwr fmt --check rules/*.pwr");
  sub->callback([format, &options] { run_format(options, *format); });

  add_test_command(app, options);

  auto verify = std::make_shared<VerifyArgs>();
  sub = app.add_subcommand("verify",
                           "Check that rules keep the numbers, on graphs made from their patterns");
  verify->rules.add_to(*sub, false);
  sub->add_option("only", verify->only, "rules, families or groups; all when left out");
  sub->add_option("--ranks", verify->ranks,
                  "rules with collectives are checked on each of these numbers of ranks")
      ->type_name("LIST")
      ->capture_default_str();
  sub->footer(
      "Examples:\n  pwr verify -r llm\n  pwr verify -r my_rules.pwr add_norm\n  pwr verify -r "
      "my_rules.pwr --ranks 2,4,8");
  sub->callback([verify, &options] { run_verify(options, *verify); });
}

}  // namespace pw::cli
