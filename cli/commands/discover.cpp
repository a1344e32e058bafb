#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "discover/discover_rules.hpp"

namespace pw::cli {
namespace {

const std::vector<std::string> kOps = {"add", "mul", "mm", "relu", "cat", "split", "transpose"};

struct DiscoverArgs {
  DiscoverRequest request;
  std::vector<std::string> from, symbols, types, derives;
  std::string output;
};

void run_discover(const Options& options, const DiscoverArgs& args) {
  Session session(options);
  DiscoverRequest request = args.request;
  for (const std::string& path : args.from) {
    GraphOptions source;
    source.path = path;
    source.symbols = args.symbols;
    source.types = args.types;
    request.from.push_back(load(session, source));
  }
  if (request.ops.empty() && request.from.empty()) request.ops = kOps;
  LoadedRules derives;
  if (!args.derives.empty()) {
    RuleSource source;
    source.rules = args.derives;
    derives = load(session, source);
    request.derives = &derives;
  }
  const Discovery found = session.need(discover_rules(session.context, request, session.log()));
  if (!args.output.empty()) session.need(write_file(args.output, found.text));
  if (args.output != "-") print_out(discovery_answer(found).print(options.format));
  session.say(discovery_summary(found));
}

}  // namespace

void add_discover_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<DiscoverArgs>();
  auto* sub = app.add_subcommand("discover", "Find new rules and prove them");
  sub->add_option(
         "--ops", args->request.ops,
         fmt::format("comma-separated ops to build graphs from; default without --from: {}",
                     fmt::join(kOps, ",")))
      ->delimiter(',')
      ->configurable();
  add_setting(*sub, "--from", args->from, "GRAPH",
              "search windows of a few nodes in these graphs for cheaper equivalents");
  add_setting(*sub, "--often", args->request.often, CLI::Range(1, 1000000),
              "only windows that occur at least this often");
  add_setting(*sub, "--symbol", args->symbols, "make an axis of a dump symbolic: n=arg0_1.0");
  add_type_option(*sub, args->types);
  add_setting(*sub, "--derives", args->derives, "RULES",
              "rule files or library names: report how many of their rules the discovered "
              "rules derive, and how many it takes");
  add_setting(*sub, "--nodes", args->request.nodes, CLI::Range(1, 3), "maximum nodes of a graph");
  add_setting(*sub, "--inputs", args->request.inputs, CLI::Range(1, 4),
              "maximum inputs of a graph");
  add_default(*sub, "--seed", args->request.seed, "seed of the numbers that distinguish graphs");
  sub->add_option("-o,--output", args->output,
                  "output .pwr file for the rules, each with a test; - is standard output");
  sub->footer(
      "Graphs that agree over a prime field, for two sets of shapes, become a rule for all sizes.\n"
      "A rule is kept if it is proved, its test passes, and earlier rules do not derive it.\n"
      "Exit code: 0, whether or not rules are found.\n"
      "\n"
      "Examples:\n"
      "  pwr discover -o found.pwr\n"
      "  pwr discover --ops add,mul,neg --nodes 2 -o -\n"
      "  pwr discover --from layer.pwg -o found.pwr\n"
      "  pwr discover --ops relu,cat,split --derives merge --format json");
  sub->callback([args, &options] { run_discover(options, *args); });
}

}  // namespace pw::cli
