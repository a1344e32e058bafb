// Exports the command explore.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "pipeline/exploring.hpp"

namespace pw::cli {
namespace {

struct ExploreArgs {
  GraphOptions graph;
  RuleOptions rules;
  ExploreRequest explore;
  std::vector<std::string> before;  ///< a:b
  std::size_t most = 20;
};

ExploreRequest explore_request(const Session& session, const ExploreArgs& args) {
  ExploreRequest out = args.explore;
  out.pipeline = args.rules.pipeline;
  for (const std::string& pair : args.before)
    out.before.push_back(session.need(parse_before(pair)));
  return out;
}

void run_explore(const Options& options, const ExploreArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules);
  const Graph graph = load(session, args.graph);
  const Exploration found =
      session.need(explore(graph, rules, explore_request(session, args), session.log()));
  print_out(explore_answer(found, args.most).print(options.format));
  session.say(fmt::format("{} orders end with {} graphs; {} runs of a pass", found.results.orders,
                          found.results.ends.size(), found.results.runs));
  if (found.ranked.size() > args.most)
    session.say(fmt::format("the best {} are shown; --most shows more", args.most));
  session.say(found.suggestion.empty() ? "no order costs less than the written one"
                                       : "an order that costs less:\n" + found.suggestion);
}

}  // namespace

void add_explore_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ExploreArgs>();
  auto* sub = app.add_subcommand(
      "explore",
      "Run the passes of a pipeline in all orders: which is best, and which rule takes "
      "whose nodes");
  args->graph.add_to(*sub);
  args->rules.add_to(*sub);
  sub->add_option("--passes", args->explore.passes,
                  "put these in order, and leave the others of the pipeline where they are: before "
                  "or behind them; without, all of it")
      ->delimiter(',')
      ->type_name("LIST");
  sub->add_option("--before", args->before, "a:b, only orders in which a stands before b")
      ->type_name("A:B");
  sub->add_option("--by", args->explore.by,
                  "nodes, ops, bytes: what an order costs; the first decides, all make the Pareto "
                  "front")
      ->delimiter(',')
      ->capture_default_str()
      ->type_name("COSTS");
  sub->add_flag("--subsets", args->explore.subsets, "passes may be left out, too");
  sub->add_option("--most", args->most, "show so many end graphs, the best first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->footer(
      "A pass is run once on each graph that some order comes to.\n"
      "Examples:\n  pwr explore model.json -r llm -p o2 --passes norm,rope,activation,norm_quant\n"
      "  pwr explore model.json -r mine.pwr -p all --by nodes,bytes --before clean:norm");
  sub->callback([args, &options] { run_explore(options, *args); });
}

}  // namespace pw::cli
