// Exports the command discover: rules found by enumeration, proved.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "pipeline/discovering.hpp"

namespace pw::cli {
namespace {

struct DiscoverArgs {
  DiscoverRequest request;
  std::string output;
};

void run_discover(const Options& options, const DiscoverArgs& args) {
  Session session(options);
  const Discovery found =
      session.need(discover_rules(session.context, args.request, session.log()));
  if (!args.output.empty()) session.need(write_file(args.output, found.text));
  if (args.output != "-") print_out(discovery_answer(found).print(options.format));
  session.say(discovery_summary(found));
}

}  // namespace

void add_discover_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<DiscoverArgs>();
  args->request.ops = {"add", "mul", "mm", "relu", "cat", "split", "transpose"};
  auto* sub = app.add_subcommand("discover", "Find rules that nobody wrote, and prove them");
  sub->add_option("--ops", args->request.ops, "ops that graphs are made of, by comma")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_option("--nodes", args->request.nodes, "most nodes of a graph")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
  sub->add_option("--inputs", args->request.inputs, "most inputs of a graph")
      ->check(CLI::Range(1, 4))
      ->capture_default_str();
  sub->add_option("--seed", args->request.seed, "of the numbers that tell graphs apart")
      ->capture_default_str();
  sub->add_option("-o,--output", args->output,
                  "the .pwr file of the rules, each with a test; - is standard output");
  sub->footer(
      "Graphs that agree over a prime field, at two sets of shapes, are written as a rule for all\n"
      "sizes. It stays if it is proved, its test passes, and the rules before it do not derive "
      "it.\n"
      "Exit code: 0, whether rules are found or not.\n\nExamples:\n  pwr discover -o found.pwr\n"
      "  pwr discover --ops add,mul,neg --nodes 2 -o -\n"
      "  pwr discover --ops relu,cat,split --format json");
  sub->callback([args, &options] { run_discover(options, *args); });
}

}  // namespace pw::cli
