#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/io/standard_output.hpp"
#include "cli/commands.hpp"
#include "cli/planning.hpp"
#include "cli/settings.hpp"
#include "pipeline/capture_sizes.hpp"

namespace pw::cli {
namespace {

struct SizesArgs : SplitArgs {
  std::vector<std::string> histograms{"lognormal", "bimodal", "uniform"};
  SizesRequest sizes;  ///< fields without an option in SplitArgs
  bool list = false;
};

void check_args(const Session& session, const SizesArgs& args) {
  if (args.list && args.histograms.size() != 1)
    session.die("--list prints the sizes for one histogram", "name it with --histogram", kUsage);
  if (!args.output.empty() && !args.output.ends_with(".svg") && !names_stream(args.output))
    session.die("`" + args.output + "` is not a .svg file", "the frontier is drawn as SVG", kUsage);
}

void print_choices(const Session& session, const SizesArgs& args,
                   const std::vector<SizeChoice>& choices) {
  const std::string& format = session.options.format;
  const Table table = size_table(choices, format != "table");
  std::size_t points = 0;
  for (const SizeChoice& choice : choices) points += choice.sets.size() - 1;
  if (session.json()) {
    Answer answer;
    answer.add("rows", table);
    answer.add("chosen", chosen_table(choices));
    print_out(answer.print(format));
  } else {
    print_out(table.print(format));
  }
  session.say(fmt::format(
      "{} of {} shown; the least time has a graph for every count that occurs; times are {}",
      table.rows().size() - choices.size(), counted(points, "point"),
      args.sizes.times.empty() ? "from a roofline model" : "from " + args.sizes.times));
}

void run_sizes(const Options& options, const SizesArgs& args) {
  Session session(options);
  check_args(session, args);
  const CutGraph cut = prepared(session, args);
  SizesRequest request = args.sizes;
  request.plan = args.plan.request(session);
  const SizedGraph graph = session.need(size_graph(cut, request, session.log()));
  std::vector<SizeChoice> choices;
  std::vector<FrontierCurve> curves;
  for (const std::string& name : args.histograms) {
    choices.push_back(session.need(choose_sizes(graph, name, request)));
    curves.push_back(choices.back().curve());
    const std::string sizes = fmt::format("{}", fmt::join(choices.back().chosen(), ","));
    if (args.list)
      print_out(session.json() ? to_json(choices.back().chosen()) : sizes + "\n");
    else
      session.say(fmt::format("{}: --sizes {}", name, sizes));
  }
  if (!args.list) print_choices(session, args, choices);
  if (!args.output.empty()) session.need(write_file(args.output, frontier_svg(curves)));
}

}  // namespace

void add_sizes_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<SizesArgs>();
  auto* sub = app.add_subcommand(
      "sizes", "Choose capture sizes for a histogram of token counts, a cost and a budget");
  args->graph.add_to(*sub);
  args->rules.add_to(*sub);
  args->plan.add_to(*sub);
  sub->add_option("--histogram", args->histograms,
                  "token counts with their frequencies: text, CSV, JSON, or the table that vLLM "
                  "logs with --cudagraph-metrics; or lognormal, bimodal, uniform")
      ->type_name("FILE|NAME")
      ->delimiter(',')
      ->capture_default_str()
      ->configurable();
  add_setting(*sub, "--times", args->sizes.times, "FILE",
              "measured seconds of a captured step, one size a line: `16 0.0021`; default: a "
              "roofline model");
  add_setting(*sub, "--graphs", args->sizes.graphs, CLI::Range(0, 4096),
              "capture at most this many sizes");
  add_setting(*sub, "--graph-seconds", args->sizes.graph_seconds, CLI::Range(0.0, 1e9),
              "minimum seconds that a captured size must save over all steps of the histogram");
  add_switch(*sub, "--list", args->list, "only print the chosen sizes, for --sizes");
  sub->add_option("-o,--output", args->output, "write a plot of time against the number of graphs")
      ->type_name("FILE.svg");
  sub->footer(
      "Examples:\n"
      "  pwr sizes model.json --histogram lognormal,bimodal,uniform -o frontier.svg\n"
      "  pwr sizes model.json -r llm -p o2 --histogram counts.csv --graphs 32\n"
      "  pwr plan model.json --sizes $(pwr sizes model.json --histogram server.log --list)");
  sub->callback([args, &options] { run_sizes(options, *args); });
}

}  // namespace pw::cli
