#include <fmt/format.h>

#include "base/counted.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "pipeline/compare.hpp"

namespace pw::cli {
namespace {

struct DiffArgs {
  GraphOptions before, after;
  std::vector<std::string> symbols, types;
  std::string fold = "auto";
  std::size_t limit = 100;
};

/// Prints how many rows the limit omits, and how much of each graph was found in the other.
void say_rest(const Session& session, const DiffArgs& args, const GraphDiff& diff) {
  if (args.limit != 0 && diff.changes.size() > args.limit) {
    std::size_t times = 0;
    for (std::size_t i = args.limit; i < diff.changes.size(); ++i) times += diff.changes[i].count;
    session.say(fmt::format("and {} for {}; --limit 0 prints all",
                            counted(diff.changes.size() - args.limit, "more row"),
                            counted(times, "difference")));
  }
  const auto tell = [&](const std::string& path, std::size_t lone) {
    session.say(fmt::format("{}: {} of {} are not in the other graph", path, lone,
                            counted(diff.matched + lone, "node")));
  };
  tell(args.before.path, diff.removed);
  tell(args.after.path, diff.added);
  session.say(fmt::format("{} {} in both, {} of them changed", counted(diff.matched, "node"),
                          are(diff.matched), diff.changed));
}

void run_diff(const Options& options, const DiffArgs& args) {
  Session session(options);
  GraphOptions before = args.before, after = args.after;
  before.symbols = after.symbols = args.symbols;
  before.types = after.types = args.types;
  const Graph a = load(session, before), b = load(session, after);
  const GraphDiff diff = compare_graphs(a, b, args.fold != "none");
  if (!diff.equal() || options.format != "table")
    print_out(diff_answer(diff, args.limit).print(options.format));
  if (diff.renamed_inputs > 0)
    session.say(fmt::format("{} {} named differently, and matched by use",
                            counted(diff.renamed_inputs, "input"), are(diff.renamed_inputs)));
  if (diff.equal()) {
    session.say(fmt::format("the graphs are equal up to names and order ({})",
                            counted(diff.matched, "node")));
    return;
  }
  say_rest(session, args, diff);
  throw Exit{kNegative};
}

}  // namespace

void add_diff_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<DiffArgs>();
  auto* sub = app.add_subcommand(
      "diff", "Show the differences between two graphs; exit with 1 if there are any");
  sub->add_option("before", args->before.path, kGraphFiles)->required();
  sub->add_option("after", args->after.path, "the other graph")->required();
  add_setting(*sub, "--symbol", args->symbols, "NAME=DIMS",
              "make input dims of the dumps symbolic: n=arg0_1.0,arg6_1.0 (input.axis)");
  add_type_option(*sub, args->types);
  add_setting(*sub, "--fold", args->fold, CLI::IsMember({"auto", "none"}),
              "auto: group changes that are equal up to names and layers in one row; none: one "
              "row for each");
  add_setting(*sub, "--limit", args->limit, CLI::NonNegativeNumber,
              "maximum number of rows to print; 0: all");
  sub->footer(
      "Names, groups, sources and the order of nodes are ignored. Inputs are matched by name if "
      "both graphs have the same input names, and by use otherwise.\n"
      "Examples:\n"
      "  pwr diff before.json after.json\n"
      "  pwr diff mine.fx.txt theirs.fx.txt --symbol n=arg0_1.0 --format json\n"
      "  pwr opt model.json -r llm -p o2 -o out.json && pwr diff model.json out.json");
  sub->callback([args, &options] { run_diff(options, *args); });
}

}  // namespace pw::cli
