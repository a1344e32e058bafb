// Times planning against its limits: a dispatch within a microsecond, and the choice of sizes from
// 512 candidates within ten milliseconds, compared with the quadratic form. Medians of processor
// time.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "bench/measure.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "splitter/choose.hpp"
#include "splitter/plan.hpp"
#include "splitter/step_cost.hpp"

namespace {

using namespace pw;
using namespace pw::bench;

constexpr int kRuns = 9;

double median_seconds(const std::function<void()>& body) {
  std::vector<double> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(seconds(body));
  return median(std::move(runs));
}

struct Model {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context};
  StitchedGraph pieces{Graph(context), {}, {}};
  Model() {
    need(context, load_op_library(context));
    graph = need(context, generate_llama(context, {}));
    pieces = need(context, split(graph, need(context, splitting_ops(context, nullptr, {}, {}))));
  }
};

double dispatch_seconds(const Model& model) {
  PlanOptions options;
  options.max_requests = 512;
  options.size_cap = 1024;
  options.loras = {1, 2, 4, 8};
  options.speculative_tokens = 1;
  Plan plan = need(model.context, make_plan(model.pieces, model.graph, options));
  // As if attention allowed whole decodes too: the maximum number of look-ups of a step.
  plan.mode = "full_and_piecewise";
  plan.captures = captures_of(plan);
  const Dispatcher dispatcher(plan);
  Random random(1);
  std::vector<StepShape> steps(4096);
  for (StepShape& step : steps) {
    step.query = static_cast<std::int64_t>(random.below(3));
    step.requests = 1 + static_cast<std::int64_t>(random.below(600));
    step.tokens = step.query > 0 ? step.requests * step.query : 2 * step.requests + 1;
    step.loras = static_cast<std::int64_t>(random.below(9));
  }
  std::int64_t sum = 0;
  const double all = median_seconds([&] {
    for (int i = 0; i < 16; ++i)
      for (const StepShape& step : steps) sum += dispatcher.dispatch(step).key.tokens;
  });
  if (sum == 0) die("nothing was dispatched");
  return all / (16.0 * static_cast<double>(steps.size()));
}

}  // namespace

int main() {
  const Model model;
  const StepCost cost(model.pieces, model.graph);
  const auto captured = [&](std::int64_t n) { return cost.captured(n); };
  const auto eager = [&](std::int64_t n) { return cost.eager(n); };
  Promises promises;
  promises.at_most("a dispatch", dispatch_seconds(model) * 1e6, 1, "us");
  Table table(
      {"traffic", "candidates", "graphs", "divided", "every pair", "default 51", "best 24"});
  const CaptureSizes defaults = make_capture_sizes(default_capture_sizes({}));
  for (const char* name : {"lognormal", "bimodal", "uniform"}) {
    const Histogram traffic = *histogram_named(name);
    const SizeProblem problem = size_problem(traffic, 1, 512, captured, eager);
    const std::size_t graphs = 51;
    std::vector<ChosenSizes> sets;
    const double divided = median_seconds([&] { sets = best_sets(monotone(problem), graphs); });
    const double pairs = median_seconds([&] { best_sets_slowly(monotone(problem), graphs); });
    promises.at_most(fmt::format("sizes for {} traffic", name), divided * 1e3, 10, "ms");
    const double least = with_sizes(problem, problem.sizes).seconds;
    const auto above = [&](double seconds) {
      return fmt::format("+{:.2f} %", 100 * (seconds / least - 1));
    };
    table.add({name, std::to_string(problem.sizes.size()), std::to_string(graphs),
               milliseconds(divided), milliseconds(pairs),
               above(serve(traffic, defaults, captured, eager).seconds),
               above(sets[std::min<std::size_t>(24, sets.size() - 1)].seconds)});
  }
  std::fputs((table.print() + "\n" + promises.print()).c_str(), stdout);
  return promises.kept() ? 0 : 1;
}
