#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/failure_options.hpp"
#include "cli/help/help_format.hpp"
#include "cli/settings.hpp"
#include "failures/bisect.hpp"
#include "failures/reduce.hpp"
#include "pipeline/check/check.hpp"

namespace pw::cli {
namespace {

struct FailureArgs {
  GraphOptions graph;
  RuleOptions rules;
  FailureOptions failure;
  std::string output;
  std::size_t most_runs = 0;
  void add_to(CLI::App& app, bool order) {
    graph.add_to(app);
    rules.add_to(app);
    failure.add_to(app, order);
    add_setting(app, "--runs", most_runs, CLI::Range(2, 1'000'000),
                "maximum number of graphs to test");
  }
};

void run_bisect(const Options& options, const FailureArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules);
  const Graph graph = load(session, args.graph);
  const BisectRequest request{args.rules.pipeline, args.failure.request(session), args.most_runs};
  const BisectOutcome found = session.need(bisect(graph, rules, request, session.log()));
  print_out(options.format == "table" ? bisect_text(found)
                                      : bisect_answer(found).print(options.format));
  if (!found.culprit) throw Exit{kNegative};
  const Culprit& culprit = *found.culprit;
  if (culprit.first < culprit.number)
    session.say(fmt::format("changes {} to {} cannot be tested: one of them or {} is at fault",
                            culprit.first, culprit.number - 1, culprit.number));
  if (!found.reason.empty()) session.say(found.reason);
  session.say(counted(found.runs, "run"));
}

void run_reduce(const Options& options, const FailureArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules);
  const Graph graph = load(session, args.graph);
  const ReduceRequest request{args.rules.pipeline, args.failure.request(session), args.rules.rules,
                              args.most_runs};
  const ReduceOutcome found = session.need(reduce(graph, rules, request, session.log()));
  print_out(reduce_answer(found).print(options.format));
  if (!found.fails) {
    session.say("the run does not fail");
    throw Exit{kNegative};
  }
  if (!found.reason.empty()) session.say(found.reason);
  const std::string test = with_relative_uses(found.test, args.rules.rules, args.output);
  if (args.output.empty()) return session.say(test);
  session.need(write_file(args.output, test));
  session.say(fmt::format("test: {0} (fails until the fault is fixed: pwr test {0})", args.output));
}

}  // namespace

void FailureOptions::add_to(CLI::App& app, bool order) {
  const OptionsOf group(app, "Failure");
  CLI::Option* by_command = app.add_option(
      "--command", stated.command,
      "test with this command instead of comparing results: a program and its arguments, run "
      "without a shell; {before} and {after} are replaced by files with the graph before and after "
      "rewriting; without them, the latter is appended. Exit code 0: good; 125 or a timeout: "
      "unknown; any other code or a signal: bad");
  by_command->type_name("WORDS");
  add_setting(app, "--timeout", stated.seconds, CLI::Range(0.01, 1e6),
              "with --command: time limit of a run, in seconds")
      ->needs(by_command);
  CLI::Option* by_code = add_setting(app, "--code", stated.code, "CODE",
                                     "test for this diagnostic of the rewrite or of the graph "
                                     "verifier instead of comparing results: PW1103")
                             ->excludes(by_command);
  if (order)
    app.add_flag("--order", stated.order,
                 "test whether the result depends on the order of rewrites, as in fuzz-order, "
                 "instead of comparing results")
        ->excludes(by_command)
        ->excludes(by_code)
        ->configurable();
  add_setting(app, "--tokens", tokens, "LIST",
              "token counts of the steps whose results are compared; default: 1,5");
  add_default(app, "--seed", stated.seed, "seed of weights, inputs and orders");
}

FailureRequest FailureOptions::request(const Session& session) const {
  FailureRequest out = stated;
  out.orders.seed = stated.seed;
  if (!tokens.empty()) out.tokens = session.need(parse_numbers(tokens, 1, std::int64_t{1} << 24));
  return out;
}

void add_failure_commands(CLI::App& app, const Options& options) {
  auto bisected = std::make_shared<FailureArgs>();
  bisected->most_runs = BisectRequest{}.most_runs;
  auto* sub = app.add_subcommand(
      "bisect", "Find the first rewrite of a pipeline after which the results, or a command, fail");
  bisected->add_to(*sub, false);
  sub->footer(
      "The search tests the graph after about log2(n) of the n rewrites.\n"
      "Exit code: 1 if the run does not fail.\n"
      "Examples:\n"
      "  pwr bisect model.json -r mine.pwr -p all --tokens 1,7\n"
      "  pwr bisect model.json -r mine.pwr -p all --command './compiles.sh {after}' --timeout 20");
  sub->callback([bisected, &options] { run_bisect(options, *bisected); });

  auto reduced = std::make_shared<FailureArgs>();
  reduced->most_runs = ReduceRequest{}.most_runs;
  sub = app.add_subcommand("reduce",
                           "Minimise a failing graph and its rules, and write them as a test");
  reduced->add_to(*sub, true);
  sub->add_option("-o,--output", reduced->output,
                  "write the test to this file instead of standard output");
  sub->footer(
      "Each smaller graph must fail in the same way. The test fails until the fault is fixed.\n"
      "Exit code: 1 if the run does not fail.\n"
      "Examples:\n"
      "  pwr reduce model.json -r mine.pwr -p all -o failure.pwr && pwr test failure.pwr\n"
      "  pwr reduce model.json -r mine.pwr -p all --code PW1103\n"
      "  pwr reduce model.json -r mine.pwr -p all --order\n"
      "  pwr reduce model.json -r mine.pwr -p all --command './compiles.sh {after}'");
  sub->callback([reduced, &options] { run_reduce(options, *reduced); });
}

}  // namespace pw::cli
