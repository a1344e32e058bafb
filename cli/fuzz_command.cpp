// Exports the command fuzz-order.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "pipeline/record.hpp"
#include "rewriter/analysis/fuzz_order.hpp"
#include "rewriter/driver.hpp"
#include "verify/isomorphism.hpp"

namespace pw::cli {
namespace {

struct FuzzArgs {
  GraphOptions graph;
  RuleOptions rules;
  FuzzOptions fuzz;
  std::string output;
  bool keep = false;
};

Table table_of(const FuzzReport& report) {
  Table table({"order", "seed", "nodes", "hash", "counts that differ"});
  for (const OrderRun& run : report.runs)
    table.add({std::string(name(run.kind)), std::to_string(run.seed),
               std::to_string(run.graph.node_count()), fmt::format("{:016x}", run.hash),
               differing_counts(report.runs.front(), run).second});
  return table;
}

/// One with the nodes in another order can be written as a test; else the first.
const OrderRun& clearest(const FuzzReport& report) {
  for (std::size_t i : report.different)
    if (report.runs[i].kind == OrderRun::Kind::nodes) return report.runs[i];
  return report.runs[report.different.front()];
}

void show(const Session& session, const FuzzArgs& args, const LoadedRules& rules,
          const FuzzReport& report) {
  const OrderRun& usual = report.runs.front();
  const OrderRun& other = clearest(report);
  const auto [here, there] = differing_counts(usual, other);
  session.say(fmt::format(
      "with {}, seed {}: {}", name(other.kind), other.seed,
      here.empty() ? "the same rules, at other places" : there + " instead of " + here));
  session.say("  - as declared\n  + " + std::string(name(other.kind)));
  session.say(graph_difference(usual.graph, other.graph));
  const std::string tests = fuzz_tests(args.rules.pipeline, rules.set, rules.params, usual, other);
  if (args.output.empty()) {
    session.say(tests);
    return;
  }
  std::string text;
  for (const std::string& file : args.rules.rules) text += use_line(file);
  session.need(write_file(args.output, text + "\n" + tests));
}

void run_fuzz(const Options& options, const FuzzArgs& args) {
  Session session(options);
  LoadedRules rules = load(session, args.rules);
  const Graph graph = load(session, args.graph);
  const Strategy* strategy = session.need(find_strategy(rules.set, args.rules.pipeline), kUsage);
  const auto fuzz = [&](const Graph& g) {
    return session.need(fuzz_order(g, rules.set, *strategy, rules.params, args.fuzz));
  };
  FuzzReport report = fuzz(graph);
  print_out(table_of(report).print(options.format));
  session.say(fmt::format("{} orders, seed {}: {} with another result", report.runs.size() - 1,
                          args.fuzz.seed, report.different.size()));
  if (report.different.empty()) return;
  if (!args.keep) {
    const Graph small = reduce_graph(graph, rules.set, *strategy, rules.params, args.fuzz);
    session.say(fmt::format("the smallest graph found that shows it has {} of {} nodes",
                            small.node_count(), graph.node_count()));
    report = fuzz(small);
  }
  show(session, args, rules, report);
  throw Exit{kNegative};
}

}  // namespace

void add_fuzz_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<FuzzArgs>();
  auto* sub = app.add_subcommand(
      "fuzz-order", "Run a pass in many orders of its rules and matches: is the result the same?");
  args->graph.add_to(*sub);
  args->rules.add_to(*sub);
  sub->add_option("--orders", args->fuzz.orders, "how many orders are tried")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  sub->add_option("--seed", args->fuzz.seed, "of the orders")->capture_default_str();
  sub->add_option("-o,--output", args->output,
                  "write the tests that show a difference into this file, not to the screen");
  sub->add_flag("--keep", args->keep, "do not look for a smaller graph that shows a difference");
  sub->footer(
      "Examples:\n  pwr fuzz-order model.json -r llm -p o2\n  pwr fuzz-order model.json -r "
      "my_rules.pwr -p mine --orders 100 -o found.pwr && pwr test found.pwr\n"
      "It ends with 1 when some order gives another graph or other counts.");
  sub->callback([args, &options] { run_fuzz(options, *args); });
}

}  // namespace pw::cli
