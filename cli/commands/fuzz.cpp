#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "pipeline/check/check.hpp"
#include "pipeline/check/fuzz_order.hpp"

namespace pw::cli {
namespace {

struct FuzzArgs {
  GraphOptions graph;
  RuleOptions rules;
  FuzzOrderRequest fuzz;
  std::string output;
  bool all = false;
  bool keep = false;
};

void show(const Session& session, const FuzzArgs& args, const OrderDifference& found) {
  session.say(
      fmt::format("with {}, seed {}: {}", found.order, found.seed,
                  found.counts.empty() ? "the same rules, at different places" : found.counts));
  session.say("  - as declared\n  + " + found.order);
  session.say(found.difference);
  if (args.output.empty()) {
    session.say(found.tests);
    return;
  }
  std::string text;
  for (const std::string& file : args.rules.rules) text += use_line(file);
  session.need(write_file(
      args.output, with_relative_uses(text + "\n" + found.tests, args.rules.rules, args.output)));
  session.say("test: " + args.output);
}

void run_fuzz(const Options& options, const FuzzArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules);
  const Graph graph = load(session, args.graph);
  FuzzOrderRequest request = args.fuzz;
  request.pipeline = args.rules.pipeline;
  request.reduce = !args.keep;
  const FuzzReport report = session.need(fuzz_orders(graph, rules, request));
  Answer answer;
  answer.add("orders", order_run_table(report));
  answer.add("different", Cell(report.different.size()));
  const std::string summary = fmt::format("{}, seed {}: {} with a different result",
                                          counted(report.runs.size() - 1, "order"),
                                          request.options.seed, report.different.size());
  if (options.format == "table" && !args.all) {
    print_out(summary + "\n");
  } else {
    print_out(answer.print(options.format));
    session.say(summary);
  }
  if (report.different.empty()) return;
  show(session, args, session.need(find_difference(graph, rules, request, session.log())));
  throw Exit{kNegative};
}

}  // namespace

void add_fuzz_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<FuzzArgs>();
  auto* sub = app.add_subcommand("fuzz-order",
                                 "Run a pass with many orders of its rules and matches, and check "
                                 "that the result is the same");
  args->graph.add_to(*sub);
  args->rules.add_to(*sub);
  add_setting(*sub, "--orders", args->fuzz.options.orders, CLI::Range(1, 10000),
              "number of orders to try");
  add_default(*sub, "--seed", args->fuzz.options.seed, "seed of the orders");
  sub->add_option("-o,--output", args->output,
                  "write the tests that show a difference to this file instead of standard output");
  add_switch(*sub, "--all", args->all, "also print a row for each order");
  add_switch(*sub, "--keep", args->keep, "do not minimise the graph that shows a difference");
  sub->footer(
      "Examples:\n"
      "  pwr fuzz-order model.json -r llm -p o2\n"
      "  pwr fuzz-order model.json -r my_rules.pwr -p mine --orders 100 -o found.pwr && pwr test "
      "found.pwr\n"
      "Exit code: 1 if some order gives a different graph or different counts.");
  sub->callback([args, &options] { run_fuzz(options, *args); });
}

}  // namespace pw::cli
