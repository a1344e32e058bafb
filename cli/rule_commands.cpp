// Exports the commands about rules themselves: check, fmt, test, verify.
#include <algorithm>
#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "verify/rule_check.hpp"
#include "verify/test_runner.hpp"
#include "viz/svg.hpp"

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
  for (const Rule& rule : set.rules)
    table.add({"rule", rule.name,
               fmt::format("{} nodes → {}", rule.nodes.size(), rule.replacement.size())});
  for (const auto& [name, pass] : set.passes) table.add({"pass", name, ""});
  for (const auto& [name, pipeline] : set.pipelines)
    table.add({"pipeline", name, fmt::format("{} steps", pipeline.parts.size())});
  for (const auto& [name, param] : set.params)
    table.add({"param", name, session.context->attributes.print(param.value)});
  std::fputs(table.print(options.format).c_str(), stdout);
  session.say(fmt::format("{} rules, {} passes, {} pipelines, {} ops, {} warnings",
                          set.rules.size(), set.passes.size(), set.pipelines.size(),
                          session.context->ops.size(), set.warnings.size()));
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

struct TestArgs {
  std::vector<std::string> paths;
  std::vector<std::string> definitions;
  std::string only, junit;
  std::uint64_t seed = 1;
};

/// The .pwr files below a folder, in order of their names; a file is itself.
std::vector<std::string> rule_files(const Session& session, const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      out.push_back(path);
      continue;
    }
    std::size_t before = out.size();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.path().extension() == ".pwr")
        out.push_back(entry.path().lexically_normal().string());
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    if (out.size() == before) session.die("there is no .pwr file below `" + path + "`", "", kUsage);
  }
  return out;
}

/// JUnit readers refuse control bytes, escaped or not.
std::string xml(const std::string& text) {
  std::string out = viz::xml_escaped(text);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = ' ';
  return out;
}

std::string junit(const TestReport& report) {
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pwr test\" tests=\"{}\" "
      "failures=\"{}\">\n",
      report.tests.size(), report.failed());
  for (const TestResult& test : report.tests) {
    out += fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"", xml(test.file),
                       xml(test.name), test.seconds);
    if (test.passed()) {
      out += "/>\n";
      continue;
    }
    out += ">\n";
    for (const TestFailure& f : test.failures)
      out +=
          fmt::format("    <failure message=\"{}\">{}</failure>\n", xml(f.message), xml(f.detail));
    out += "  </testcase>\n";
  }
  return out + "</testsuite>\n";
}

std::vector<std::pair<std::string, std::string>> definitions_of(
    const Session& session, const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& text : texts) out.push_back(session.need(parse_definition(text), kUsage));
  return out;
}

void run_test(const Options& options, const TestArgs& args) {
  Session session(options);
  std::vector<std::string> files = rule_files(session, args.paths);
  RuleSet set = session.need(load_rules(session.context, files));
  std::vector<SourceId> sources;  // tests of what the files use are not theirs
  for (const ast::File& file : set.files)
    for (const std::string& path : files)
      if (std::filesystem::path(session.context->sources.name(file.source)).lexically_normal() ==
          std::filesystem::path(path).lexically_normal())
        sources.push_back(file.source);
  TestOptions test_options;
  test_options.only = args.only;
  test_options.seed = args.seed;
  test_options.definitions = definitions_of(session, args.definitions);
  TestReport report = run_tests(set, sources, test_options);
  if (options.format == "table") {
    std::fputs(test_report_text(report, session.context->sources).c_str(), stdout);
  } else {
    Table table({"file", "test", "expectations", "negative", "result"});
    for (const TestResult& test : report.tests)
      table.add({test.file, test.name, std::to_string(test.expectations),
                 test.negative ? "yes" : "no",
                 test.passed() ? "ok" : test.failures.front().message});
    std::fputs(table.print(options.format).c_str(), stdout);
  }
  if (!args.junit.empty()) session.need(write_file(args.junit, junit(report)));
  if (report.failed() > 0) throw Exit{kNegative};
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

void run_verify(const Options& options, const VerifyArgs& args) {
  Session session(options);
  LoadedRules rules = load(session, args.rules);
  std::vector<RuleId> ids;
  for (const std::string& name : args.only) {
    std::vector<RuleId> some = rules.set.resolve(name);
    if (some.empty())
      session.die("there is no rule `" + name + "`", "`pwr check` lists the rules of a file",
                  kUsage);
    ids.insert(ids.end(), some.begin(), some.end());
  }
  if (args.only.empty())
    for (std::size_t i = 0; i < rules.set.rules.size(); ++i)
      if (!rules.set.rules[RuleId(i)].frontier) ids.push_back(RuleId(i));
  RuleCheckOptions check_options;
  check_options.ranks = session.need(parse_numbers(args.ranks, 1, 64), kUsage);
  Table table({"rule", "graphs", "ranks", "runs", "guards", "result"});
  std::size_t failed = 0;
  for (RuleId id : ids) {
    session.progress("verifying " + rules.set.rules[id].name);
    RuleCheck check = check_rule(rules.set, id, rules.params, check_options);
    failed += !check.passed();
    table.add({check.rule, std::to_string(check.instances),
               fmt::format("{}", fmt::join(check.ranks, ",")), std::to_string(check.runs),
               guards_text(check), check.passed() ? "before ≡ after" : check.failures.front()});
  }
  std::fputs(table.print(options.format).c_str(), stdout);
  session.say(fmt::format("{} rules verified, {} failed", ids.size() - failed, failed));
  if (failed > 0) throw Exit{kNegative};
}

}  // namespace

void add_rule_commands(CLI::App& app, const Options& options) {
  auto check = std::make_shared<CheckArgs>();
  auto* sub = app.add_subcommand("check",
                                 "Read rule files, report every mistake, and list what is in them");
  sub->add_option("files", check->files, "rule files (.pwr)")->required();
  sub->footer("Example:\n  pwr check my_rules.pwr");
  sub->callback([check, &options] { run_check(options, *check); });

  auto format = std::make_shared<FormatArgs>();
  sub = app.add_subcommand("fmt", "Lay out rule files in the one canonical way, in place");
  sub->add_option("files", format->files,
                  "rule files (.pwr); - reads standard input and writes standard output")
      ->required();
  sub->add_flag("--check", format->check,
                "change nothing; list the files that are not formatted and exit 1");
  sub->add_flag("--stdout", format->to_stdout, "print the result instead of writing the file");
  sub->footer("Examples:\n  pwr fmt rules/*.pwr\n  pwr fmt --check rules/*.pwr");
  sub->callback([format, &options] { run_format(options, *format); });

  auto test = std::make_shared<TestArgs>();
  sub = app.add_subcommand("test", "Run the tests in rule files");
  sub->add_option("paths", test->paths, "rule files, or folders of them")->required();
  sub->add_option("--only", test->only, "tests whose name holds this text")->type_name("TEXT");
  sub->add_option("-D,--define", test->definitions, "set a param, unless a test sets it: -D tp=2")
      ->type_name("NAME=VALUE");
  sub->add_option("--junit", test->junit, "write the results as JUnit XML too")->type_name("FILE");
  sub->add_option("--seed", test->seed, "of the numbers for `expect numeric`")
      ->capture_default_str();
  sub->footer("Examples:\n  pwr test rules/\n  pwr test my_rules.pwr --only residual");
  sub->callback([test, &options] { run_test(options, *test); });

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
