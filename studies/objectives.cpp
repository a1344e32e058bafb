#include "studies/objectives.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "base/try.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/piece_program.hpp"
#include "pipeline/run/execution.hpp"
#include "rewriter/egraph/cost.hpp"
#include "splitter/step_cost.hpp"

namespace pw {
namespace {

constexpr std::int64_t kUsualRows = 256;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::optional<Cost> counted_cost(Objective objective) {
  return static_cast<std::size_t>(objective) < kCostNames.size()
             ? std::optional(static_cast<Cost>(objective))
             : std::nullopt;
}

/// The token count of the modelled or measured step.
std::int64_t step_rows(const Graph& graph, const ExploreRequest& request) {
  if (const auto rows = static_rows(graph); !rows.empty()) return rows.front();
  const SymbolFact* fact = graph.facts.find(tokens_symbol(graph));
  const std::int64_t wanted = request.rows > 0 ? request.rows : kUsualRows;
  return fact == nullptr ? wanted
                         : std::clamp(wanted, std::max<std::int64_t>(fact->min, 1), fact->max);
}

struct Planned {
  StitchedGraph pieces;
  Plan plan;
  double seconds = 0;  ///< time for splitting and planning
};

/// Counts the kernels and library calls of one step on a device; an op without either counts as
/// one.
Result<std::int64_t> launches_of(const StitchedGraph& pieces) {
  const auto library = make_eager();
  cuda::HostDriver driver;
  std::int64_t sum = 0;
  for (const PieceClass& c : pieces.classes) {
    const Graph& piece = pieces.pieces[c.members.front()].graph;
    const auto program = PW_TRY(cuda::make_program(piece, *library, driver, {}));
    const std::int64_t each = program.lacks.empty()
                                  ? static_cast<std::int64_t>(program.launches.size())
                                  : cost_of(piece, Cost::ops);
    sum += each * static_cast<std::int64_t>(c.members.size());
  }
  return sum;
}

/// One graph, built and ready to run.
struct Built {
  std::unique_ptr<StepExecutable> executable;
  std::vector<double> compiling, running;  ///< seconds
};

class Measuring {
 public:
  Measuring(const std::vector<const Graph*>& graphs, const Graph& source,
            const ExploreRequest& request, const Log& log)
      : graphs_(graphs), source_(source), request_(request), log_(log) {}

  /// Compiles each graph; with `run`, runs all alternately.
  Result<std::vector<Built>> measure(const std::vector<Planned>& planned, bool run) {
    EngineOptions options;
    const auto engine = PW_TRY(open_engine(builtin_engines(), request_.backend, options));
    std::vector<Weights> weights = weights_of_ranks(source_, options.seed, 1);
    std::vector<Built> out(graphs_.size());
    for (std::size_t i = 0; i < graphs_.size(); ++i) {
      log_.progress({"compiling", i, graphs_.size(), "graphs"});
      const auto begin = std::chrono::steady_clock::now();
      out[i].executable =
          PW_TRY(engine->build({*graphs_[i], planned[i].pieces, planned[i].plan}, weights.front()));
      out[i].compiling.push_back(planned[i].seconds + seconds_since(begin));
    }
    const Step step = one_sequence(step_rows(source_, request_));
    for (int round = 0; run && round <= request_.repeats; ++round)
      for (std::size_t turn = 0; turn < out.size(); ++turn) {
        log_.progress({"measuring", static_cast<std::size_t>(round),
                       static_cast<std::size_t>(request_.repeats) + 1, "rounds"});
        // Each round starts with a different graph; the first round is a warm-up.
        Built& built = out[(turn + static_cast<std::size_t>(round)) % out.size()];
        const StepReport report = PW_TRY(built.executable->run(step, weights, {})).report;
        if (round > 0) built.running.push_back(report.seconds);
      }
    for (Built& built : out) built.executable.reset();  // before the engine
    return out;
  }

 private:
  const std::vector<const Graph*>& graphs_;
  const Graph& source_;
  const ExploreRequest& request_;
  const Log& log_;
};

}  // namespace

bool is_whole(Objective objective) { return objective < Objective::modelled_us; }

Result<std::vector<std::vector<double>>> objectives_of(
    const std::vector<const Graph*>& graphs, const Graph& source, const std::vector<Objective>& by,
    const LoadedRules& rules, const ExploreRequest& request, const Log& log) {
  const auto wants = [&](Objective objective) {
    return std::find(by.begin(), by.end(), objective) != by.end();
  };
  std::vector<Planned> planned;
  if (std::any_of(by.begin(), by.end(), [](Objective each) { return !counted_cost(each); }))
    for (const Graph* graph : graphs) {
      log.progress({"planning", planned.size(), graphs.size(), "graphs"});
      const auto begin = std::chrono::steady_clock::now();
      Planned one{PW_TRY(cut_graph(*graph, rules, {})), {}, 0};
      one.plan = PW_TRY(plan_graph(one.pieces, *graph, rules, {}, {}));
      one.seconds = seconds_since(begin);
      planned.push_back(std::move(one));
    }
  std::vector<Built> built;
  if (wants(Objective::measured_us) || wants(Objective::compile_ms))
    built = PW_TRY(
        Measuring(graphs, source, request, log).measure(planned, wants(Objective::measured_us)));
  std::vector<std::vector<double>> out(graphs.size());
  for (std::size_t i = 0; i < graphs.size(); ++i)
    for (const Objective objective : by) {
      double value = 0;
      switch (objective) {
        case Objective::nodes:
        case Objective::ops:
        case Objective::bytes:
          value = static_cast<double>(cost_of(*graphs[i], *counted_cost(objective)));
          break;
        case Objective::launches:
          value = static_cast<double>(PW_TRY(launches_of(planned[i].pieces)));
          break;
        case Objective::peak_bytes:
          value = static_cast<double>(planned[i].plan.memory.arena_bytes);
          break;
        case Objective::modelled_us:
          value =
              1e6 * StepCost(planned[i].pieces, *graphs[i]).captured(step_rows(source, request));
          break;
        case Objective::measured_us: value = 1e6 * middle_of(built[i].running); break;
        case Objective::compile_ms: value = 1e3 * middle_of(built[i].compiling); break;
      }
      out[i].push_back(value);
    }
  return out;
}

}  // namespace pw
