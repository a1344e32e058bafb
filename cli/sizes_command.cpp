// Exports the command sizes: the capture sizes that serve a histogram of token counts best.
#include <algorithm>
#include <cmath>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "base/standard_output.hpp"
#include "cli/commands.hpp"
#include "cli/planning.hpp"
#include "pipeline/static_rows.hpp"
#include "splitter/choose.hpp"
#include "splitter/step_cost.hpp"
#include "viz/frontier.hpp"

namespace pw::cli {
namespace {

using Cost = std::function<double(std::int64_t)>;

struct SizesArgs : SplitArgs {
  std::vector<std::string> histograms{"lognormal", "bimodal", "uniform"};
  std::string times;
  std::size_t graphs = 24;
  double graph_seconds = 0;
  bool list = false;
};

Histogram histogram_of(const Session& session, const std::string& name) {
  if (auto made = histogram_named(name)) return *made;
  return session.need(read_histogram(session.need(read_file(name)), name));
}

/// Every number of graphs, for programs; for people those that differ in more than a few.
bool shown(std::size_t graphs, const std::string& format) {
  if (format != "table" || graphs <= 4) return true;
  std::size_t step = 1;
  while (step * 8 <= graphs) step *= 2;
  return graphs % (2 * step) == 0;
}

/// What a histogram is served with, and what that takes.
class Choice {
 public:
  Choice(const SizesArgs& args, Histogram histogram, const Plan& plan, std::int64_t largest,
         Cost captured, Cost eager)
      : args_(args),
        histogram_(std::move(histogram)),
        captured_(std::move(captured)),
        eager_(std::move(eager)),
        defaults_(plan.capture) {
    const std::int64_t multiple = SizeRules{.speculative_tokens = plan.speculative_tokens,
                                            .sequence_parallel = plan.eager_multiple}
                                      .multiple();
    const SizeProblem problem =
        monotone(size_problem(histogram_, multiple, largest, captured_, eager_));
    points_ = frontier(problem, std::max(args.graphs, defaults_.sizes.size()));
    least_ = with_sizes(problem, problem.sizes).seconds;
    for (const ChosenSizes& point : points_) {
      if (point.sizes.size() > args.graphs) continue;
      if (chosen_ == nullptr || weighed(point) < weighed(*chosen_)) chosen_ = &point;
    }
  }
  Choice(const Choice&) = delete;

  [[nodiscard]] std::vector<std::int64_t> sizes() const {
    return chosen_ == nullptr ? std::vector<std::int64_t>{} : chosen_->sizes;
  }
  void add_rows(Table& table, const std::string& name, const std::string& format) const {
    for (const ChosenSizes& point : points_) {
      const bool chosen = &point == chosen_;
      if (chosen || shown(point.sizes.size(), format))
        add_row(table, name, chosen ? "chosen" : "", make_capture_sizes(point.sizes));
    }
    add_row(table, name, "default", defaults_);
  }
  [[nodiscard]] FrontierCurve curve(const std::string& name) const {
    FrontierCurve out{name, {}, {}};
    for (const ChosenSizes& point : points_)
      out.points.emplace_back(point.sizes.size(), above_least(point.seconds));
    out.marks.push_back({defaults_.sizes.size(),
                         above_least(serve(histogram_, defaults_, captured_, eager_).seconds)});
    return out;
  }
  [[nodiscard]] std::size_t points() const { return points_.size(); }

 private:
  [[nodiscard]] double weighed(const ChosenSizes& set) const {
    return set.seconds + args_.graph_seconds * set.graph_cost;
  }
  [[nodiscard]] double above_least(double seconds) const {
    return least_ > 0 ? 100 * (seconds / least_ - 1) : 0;
  }
  void add_row(Table& table, const std::string& name, const std::string& mark,
               const CaptureSizes& sizes) const {
    const Served served = serve(histogram_, sizes, captured_, eager_);
    const double steps = histogram_.total();
    table.add({name, std::to_string(sizes.sizes.size()), mark,
               fmt::format("{:.2f}", 1e6 * served.seconds / steps),
               fmt::format("{:.2f}", above_least(served.seconds)),
               fmt::format("{:.2f}", 100 * (served.rows / served.tokens - 1)),
               fmt::format("{:.2f}", 100 * served.uncaptured / steps)});
  }

  const SizesArgs& args_;
  Histogram histogram_;
  Cost captured_, eager_;
  CaptureSizes defaults_;
  std::vector<ChosenSizes> points_;
  const ChosenSizes* chosen_ = nullptr;
  double least_ = 0;
};

void run_sizes(const Options& options, const SizesArgs& args) {
  Session session(options);
  if (args.list && args.histograms.size() != 1)
    session.die("--list prints the sizes for one histogram", "name it with --histogram", kUsage);
  if (!args.output.empty() && !args.output.ends_with(".svg") && !names_stream(args.output))
    session.die("`" + args.output + "` is no .svg file", "the frontier is drawn as SVG", kUsage);
  const auto [rules, graph, pieces] = prepared(session, args);
  if (graph.facts.tokens().empty()) {
    const std::vector<std::int64_t> rows = static_rows(graph);
    session.die(rows.empty() ? std::string("the graph is static: it has one size")
                             : fmt::format("the graph is static: it has one size, of {} rows",
                                           fmt::join(rows, " or ")),
                symbol_hint(graph, rows.empty() ? 1 : rows.front()), kInvalidInput);
  }
  PlanRequest request = args.plan.request(session);
  if (request.mode.empty()) request.mode = "piecewise";
  const Plan plan = session.need(plan_graph(pieces, graph, rules, request, session.log()));
  if (plan.capture.sizes.empty())
    session.die("nothing of this graph is captured", plan.mode_reason, kInvalidInput);
  const StepCost model(pieces, graph);
  std::vector<std::pair<std::int64_t, double>> times;
  if (!args.times.empty())
    times = session.need(read_step_times(session.need(read_file(args.times)), args.times));
  const Cost captured = [&](std::int64_t tokens) {
    return times.empty() ? model.captured(tokens) : interpolated(times, tokens);
  };
  // What capturing saves is the model's, whatever the times are.
  const Cost eager = [&](std::int64_t tokens) {
    return captured(tokens) + model.eager(tokens) - model.captured(tokens);
  };
  Table table({"traffic", "graphs", "set", "us a step", "% above least", "% padding", "% eager"});
  std::vector<FrontierCurve> curves;
  std::size_t points = 0;
  for (const std::string& name : args.histograms) {
    const Choice choice(args, histogram_of(session, name), plan, plan.capture.sizes.back(),
                        captured, eager);
    if (args.list) {
      print_out(fmt::format("{}\n", fmt::join(choice.sizes(), ",")));
    } else {
      choice.add_rows(table, name, options.format);
      session.say(fmt::format("{}: --sizes {}", name, fmt::join(choice.sizes(), ",")));
    }
    curves.push_back(choice.curve(name));
    points += choice.points();
  }
  if (!args.list) {
    print_out(table.print(options.format));
    session.say(fmt::format(
        "{} of {} points shown; least is a graph for every count that occurs; times are {}",
        table.rows().size() - args.histograms.size(), points,
        times.empty() ? "a roofline's" : "those of " + args.times));
  }
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
                  "token counts and how often they occur: text, CSV, JSON, or the table that vLLM "
                  "logs with --cudagraph-metrics; or lognormal, bimodal, uniform")
      ->type_name("FILE|NAME")
      ->delimiter(',')
      ->capture_default_str();
  sub->add_option("--times", args->times,
                  "measured seconds of a captured step: `16 0.0021` a line; a roofline if left out")
      ->type_name("FILE");
  sub->add_option("--graphs", args->graphs, "capture at most this many sizes")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  sub->add_option("--graph-seconds", args->graph_seconds,
                  "what a captured size must save over all steps of the histogram")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  sub->add_flag("--list", args->list, "print the chosen sizes only, for --sizes");
  sub->add_option("-o,--output", args->output, "draw time against the number of graphs")
      ->type_name("FILE.svg");
  sub->footer(
      "Examples:\n"
      "  pwr sizes model.json --histogram lognormal,bimodal,uniform -o frontier.svg\n"
      "  pwr sizes model.json -r llm -p o2 --histogram counts.csv --graphs 32\n"
      "  pwr plan model.json --sizes $(pwr sizes model.json --histogram server.log --list)");
  sub->callback([args, &options] { run_sizes(options, *args); });
}

}  // namespace pw::cli
