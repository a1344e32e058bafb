#include "pipeline/capture_sizes.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/try.hpp"
#include "pipeline/run/static_rows.hpp"
#include "splitter/choose.hpp"

namespace pw {
namespace {

Status check_dynamic(const Graph& graph) {
  if (!graph.facts.tokens().empty()) return {};
  const std::vector<std::int64_t> rows = static_rows(graph);
  return fail(error_at({}, "PW1432",
                       rows.empty()
                           ? std::string("the graph is static: it has only one size")
                           : fmt::format("the graph is static: it has only one size, {} rows",
                                         fmt::join(rows, " or ")),
                       symbol_hint(graph, rows.empty() ? 1 : rows.front())));
}

Result<Histogram> histogram_of(const std::string& traffic) {
  if (auto made = histogram_named(traffic)) return *made;
  return read_histogram(PW_TRY(read_text_file(traffic, "a histogram: text, CSV or JSON")), traffic);
}

/// Thins the printed rows: every number of graphs up to 4, then growing steps.
bool shown_to_people(std::size_t graphs) {
  if (graphs <= 4) return true;
  std::size_t step = 1;
  while (step * 8 <= graphs) step *= 2;
  return graphs % (2 * step) == 0;
}

/// Measures sets of sizes against one histogram.
class Serving {
 public:
  Serving(const Histogram& histogram, const StepTimes& times, double least)
      : histogram_(histogram), times_(times), least_(least) {}

  [[nodiscard]] SizeSet set(const CaptureSizes& sizes, std::string mark) const {
    const Served served = serve(
        histogram_, sizes, [&](std::int64_t n) { return times_.captured(n); },
        [&](std::int64_t n) { return times_.eager(n); });
    const double steps = histogram_.total();
    return {sizes.sizes,
            std::move(mark),
            served.seconds / steps,
            above_least(served.seconds),
            100 * (served.rows / served.tokens - 1),
            100 * served.uncaptured / steps,
            above_least(served.seconds)};
  }
  [[nodiscard]] double above_least(double seconds) const {
    return least_ > 0 ? 100 * (seconds / least_ - 1) : 0;
  }

 private:
  const Histogram& histogram_;
  const StepTimes& times_;
  double least_;
};

/// The fastest within the budget, where a graph must save its seconds; null: none is within it.
const ChosenSizes* fastest(const std::vector<ChosenSizes>& points, const SizesRequest& request) {
  const auto weighed = [&](const ChosenSizes& point) {
    return point.seconds + request.graph_seconds * point.graph_cost;
  };
  const ChosenSizes* out = nullptr;
  for (const ChosenSizes& point : points) {
    if (point.sizes.size() > request.graphs) continue;
    if (out == nullptr || weighed(point) < weighed(*out)) out = &point;
  }
  return out;
}

}  // namespace

double StepTimes::captured(std::int64_t tokens) const {
  return measured_.empty() ? model_.captured(tokens) : interpolated(measured_, tokens);
}

double StepTimes::eager(std::int64_t tokens) const {
  return captured(tokens) + model_.eager(tokens) - model_.captured(tokens);
}

Result<SizedGraph> size_graph(const CutGraph& cut, const SizesRequest& request, const Log& log) {
  PW_TRY(check_dynamic(cut.graph));
  if (!(request.graph_seconds >= 0 && request.graph_seconds <= 1e9))
    return fail(error_at({}, "PW1402",
                         fmt::format("graph_seconds is {}, but must be a number from 0 to 1e9",
                                     request.graph_seconds)));
  PlanRequest planned = request.plan;
  if (planned.mode.empty()) planned.mode = "piecewise";
  Plan plan = PW_TRY(plan_graph(cut.pieces, cut.graph, cut.rules, planned, log));
  if (plan.capture.sizes.empty())
    return fail(error_at({}, "PW1433", "no part of this graph is captured", plan.mode_reason));
  std::vector<std::pair<std::int64_t, double>> times;
  if (!request.times.empty())
    times = PW_TRY(
        read_step_times(PW_TRY(read_text_file(request.times, "a table of times")), request.times));
  return SizedGraph{std::move(plan), StepTimes(StepCost(cut.pieces, cut.graph), std::move(times))};
}

Result<SizeChoice> choose_sizes(const SizedGraph& graph, const std::string& traffic,
                                const SizesRequest& request) {
  const Histogram histogram = PW_TRY(histogram_of(traffic));
  const Plan& plan = graph.plan;
  const std::int64_t multiple = SizeRules{.speculative_tokens = plan.speculative_tokens,
                                          .sequence_parallel = plan.eager_multiple}
                                    .multiple();
  const SizeProblem problem = monotone(size_problem(
      histogram, multiple, plan.capture.sizes.back(),
      [&](std::int64_t n) { return graph.times.captured(n); },
      [&](std::int64_t n) { return graph.times.eager(n); }));
  const std::vector<ChosenSizes> points =
      frontier(problem, std::max(request.graphs, plan.capture.sizes.size()));
  const ChosenSizes* chosen = fastest(points, request);
  const Serving serving(histogram, graph.times, with_sizes(problem, problem.sizes).seconds);
  SizeChoice out{traffic, {}};
  for (const ChosenSizes& point : points) {
    out.sets.push_back(
        serving.set(make_capture_sizes(point.sizes), &point == chosen ? "chosen" : ""));
    out.sets.back().drawn_above = serving.above_least(point.seconds);
  }
  out.sets.push_back(serving.set(plan.capture, "default"));
  return out;
}

std::vector<std::int64_t> SizeChoice::chosen() const {
  for (const SizeSet& set : sets)
    if (set.mark == "chosen") return set.sizes;
  return {};
}

FrontierCurve SizeChoice::curve() const {
  FrontierCurve out{traffic, {}, {}};
  for (const SizeSet& set : sets)
    (set.mark == "default" ? out.marks : out.points)
        .emplace_back(set.sizes.size(), set.drawn_above);
  return out;
}

Table chosen_table(const std::vector<SizeChoice>& choices) {
  Table table({"traffic", "sizes"});
  for (const SizeChoice& choice : choices) table.add({choice.traffic, list_cell(choice.chosen())});
  return table;
}

Table size_table(const std::vector<SizeChoice>& choices, bool all) {
  Table table({"traffic",
               "graphs",
               "set",
               {"us a step", "step_s"},
               {"% above least", "above_least_percent"},
               {"% padding", "padding_percent"},
               {"% eager", "eager_percent"}});
  for (const SizeChoice& choice : choices)
    for (const SizeSet& set : choice.sets)
      if (all || !set.mark.empty() || shown_to_people(set.sizes.size()))
        table.add({choice.traffic, set.sizes.size(), set.mark,
                   real_cell(set.step_seconds, fmt::format("{:.2f}", 1e6 * set.step_seconds)),
                   real_cell(set.above_least, fmt::format("{:.2f}", set.above_least)),
                   real_cell(set.padding, fmt::format("{:.2f}", set.padding)),
                   real_cell(set.uncaptured, fmt::format("{:.2f}", set.uncaptured))});
  return table;
}

}  // namespace pw
