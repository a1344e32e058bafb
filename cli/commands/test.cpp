#include "pipeline/check/test.hpp"

#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"

namespace pw::cli {
namespace {

struct TestArgs {
  TestRequest test;
  std::string junit;
};

void print_outcome(const Options& options, const TestOutcome& outcome) {
  print_out(options.format == "table" ? outcome.text + test_summary(outcome.report)
                                      : test_table(outcome.report).print(options.format));
}

void run_test(const Options& options, const TestArgs& args) {
  Session session(options);
  const TestOutcome outcome = session.need(run_test_files(
      args.test, session.log(), [&](const Diagnostics& mistakes, const ContextPtr& context) {
        session.report(mistakes, context->sources);
      }));
  print_outcome(options, outcome);
  if (!args.junit.empty())
    session.need(write_file(args.junit, junit(outcome.report.tests, outcome.unloaded)));
  if (!outcome.unloaded.empty()) throw Exit{kInvalidInput};
  if (outcome.report.failed() > 0) throw Exit{kNegative};
}

}  // namespace

void add_test_command(CLI::App& app, const Options& options) {
  auto test = std::make_shared<TestArgs>();
  auto* sub = app.add_subcommand(
      "test", "Run the tests in rule files, and compare the counts in .counts.json files");
  sub->add_option("paths", test->test.paths, "rule files, count files, or folders of them")
      ->required();
  add_setting(*sub, "--only", test->test.only, "TEXT",
              "only run tests whose name contains this text");
  add_setting(*sub, "-D,--define", test->test.definitions, "NAME=VALUE",
              "set a param, unless a test sets it: -D tp=2");
  sub->add_flag("--update", test->test.update,
                "correct the counts of failed `expect R == 3` and of .counts.json files; other "
                "failures are unchanged");
  add_switch(*sub, "--verdicts", test->test.verdicts,
             "also verify each rule of the files, as `pwr verify` does; a rule that changes "
             "results or may overflow fails");
  add_file(*sub, "--junit", test->junit, "also write the results as JUnit XML");
  add_default(*sub, "--seed", test->test.seed, "seed of the inputs for `expect numeric`");
  sub->footer(
      "Examples:\n"
      "  pwr test rules/\n"
      "  pwr test my_rules.pwr --only residual\n"
      "  pwr test my_rules.pwr --verdicts\n"
      "  pwr test rules/ --update && git diff       review the new counts\n"
      "  pwr test rules/ --junit results.xml\n"
      "  pwr test tests/baselines/          rewrites of generated models, rule by rule");
  sub->callback([test, &options] { run_test(options, *test); });
}

}  // namespace pw::cli
