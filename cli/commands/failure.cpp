#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/failure_options.hpp"
#include "cli/help/help_format.hpp"
#include "failures/bisect.hpp"
#include "failures/reduce.hpp"

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
    app.add_option("--runs", most_runs, "look at so many graphs at most")
        ->check(CLI::Range(2, 1'000'000))
        ->capture_default_str()
        ->configurable();
  }
};

void run_bisect(const Options& options, const FailureArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules);
  const Graph graph = load(session, args.graph);
  const BisectRequest request{args.rules.pipeline, args.failure.request(session), args.most_runs};
  const BisectOutcome found = session.need(bisect(graph, rules, request, session.log()));
  print_out(bisect_answer(found).print(options.format));
  if (!found.culprit) {
    session.say(fmt::format("the run of {} does not fail", counted(found.changes, "change")));
    throw Exit{kNegative};
  }
  const Culprit& culprit = *found.culprit;
  if (culprit.first < culprit.number)
    session.say(fmt::format("changes {} to {} cannot be told: one of them or {} is at fault",
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
  if (args.output.empty())
    session.say(found.test);
  else
    session.need(write_file(args.output, found.test));
}

}  // namespace

void FailureOptions::add_to(CLI::App& app, bool order) {
  const OptionsOf group(app, "Failure");
  CLI::Option* by_command = app.add_option(
      "--command", stated.command,
      "instead of numbers: a program and its arguments, run without a shell; {before} and {after} "
      "stand for files with the graph before and after rewriting; without them, the latter is its "
      "last argument. Exit code 0: good; 125, or too long: cannot tell; else, or a signal: bad");
  by_command->type_name("WORDS");
  app.add_option("--timeout", stated.seconds, "of --command: seconds that a run of it may take")
      ->check(CLI::Range(0.01, 1e6))
      ->needs(by_command)
      ->capture_default_str()
      ->configurable();
  CLI::Option* by_code =
      app.add_option("--code", stated.code,
                     "instead of numbers: a diagnostic of the rewrite, or of the verifier of its "
                     "result: PW1103")
          ->type_name("CODE")
          ->excludes(by_command)
          ->configurable();
  if (order)
    app.add_flag("--order", stated.order,
                 "instead of numbers: the result depends on the order of rewrites, as fuzz-order "
                 "finds")
        ->excludes(by_command)
        ->excludes(by_code)
        ->configurable();
  app.add_option("--tokens", tokens, "of numbers: token counts of the steps that are compared; 1,5")
      ->type_name("LIST")
      ->configurable();
  app.add_option("--seed", stated.seed, "of weights and inputs, and of orders")
      ->capture_default_str()
      ->configurable();
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
      "bisect", "Find the one rewrite of a pipeline after which the numbers, or a command, fail");
  bisected->add_to(*sub, false);
  sub->footer(
      "The rewrites of the run are numbered, and the graph after each of some is looked at: about "
      "log2 of their number.\n"
      "It ends with 1 where the run does not fail.\n"
      "Examples:\n  pwr bisect model.json -r mine.pwr -p all --tokens 1,7\n"
      "  pwr bisect model.json -r mine.pwr -p all --command './compiles.sh {after}' --timeout 20");
  sub->callback([bisected, &options] { run_bisect(options, *bisected); });

  auto reduced = std::make_shared<FailureArgs>();
  reduced->most_runs = ReduceRequest{}.most_runs;
  sub = app.add_subcommand(
      "reduce", "Make a failing graph and its rules as small as can be, and a test of them");
  reduced->add_to(*sub, true);
  sub->add_option("-o,--output", reduced->output,
                  "write the test into this file, not to the screen");
  sub->footer(
      "Each smaller graph is checked to fail as the whole does. The test fails while the fault is "
      "there.\n"
      "It ends with 1 where the run does not fail.\n"
      "Examples:\n  pwr reduce model.json -r mine.pwr -p all -o failure.pwr && pwr test "
      "failure.pwr\n"
      "  pwr reduce model.json -r mine.pwr -p all --code PW1103\n"
      "  pwr reduce model.json -r mine.pwr -p all --order\n"
      "  pwr reduce model.json -r mine.pwr -p all --command './compiles.sh {after}'");
  sub->callback([reduced, &options] { run_reduce(options, *reduced); });
}

}  // namespace pw::cli
