#include "pipeline/run/bench.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "base/io/file_kind.hpp"
#include "base/try.hpp"
#include "pipeline/run/generation.hpp"
#include "pipeline/symbol_values.hpp"
#include "splitter/histogram.hpp"
#include "tensor/kv_cache.hpp"

namespace pw {
namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Cell microseconds(double seconds) {
  return real_cell(seconds, fmt::format("{:.1f}", 1e6 * seconds));
}

Result<std::vector<MeasuredStep>> steps_of(const BenchRequest& request, const Graph& graph) {
  std::vector<MeasuredStep> out;
  if (request.histogram.empty()) {
    for (PlannedStep& planned : PW_TRY(wanted_steps(request, graph)))
      out.push_back({std::move(planned)});
    return out;
  }
  auto histogram = histogram_named(request.histogram);
  if (!histogram)
    histogram = PW_TRY(
        read_histogram(PW_TRY(read_text_file(request.histogram, "a histogram: text, CSV or JSON")),
                       request.histogram));
  for (const auto& [tokens, count] : histogram->steps)
    out.push_back({{one_sequence(tokens), {}}, count});
  return out;
}

enum class How : std::uint8_t { planned, eager, padded };
constexpr const char* kHowNames[] = {"as planned", "eagerly", "padded"};

/// Runs all steps in each way, in order: sequences continue from step to step.
class Measurement {
 public:
  Measurement(const BenchRequest& request, const Graph& graph, StepExecutable& executable,
              std::vector<Weights>& weights, BenchReport& report, const Log& log)
      : request_(request),
        graph_(graph),
        executable_(executable),
        weights_(weights),
        report_(report),
        log_(log) {}

  Status run() {
    PW_TRY(pass(How::planned));
    for (const MeasuredStep& m : report_.steps)
      report_.most_rows = std::max(report_.most_rows, m.report.padded);
    PW_TRY(pass(How::eager));
    return pass(How::padded);
  }

 private:
  Status pass(How how) {
    KvCache seen;
    for (std::size_t i = 0; i < report_.steps.size(); ++i) {
      MeasuredStep& m = report_.steps[i];
      log_.progress({fmt::format("measuring {}", kHowNames[static_cast<std::size_t>(how)]), i,
                     report_.steps.size(), "steps"});
      Step step = m.planned.step;
      step.cache = request_.steps.empty() ? nullptr : &seen;
      RunOptions options;
      options.pad = how != How::eager;
      const bool sized = !report_.record.plan.tokens.empty();
      options.rows = how == How::padded && sized ? report_.most_rows : 0;
      const StepReport report = PW_TRY(repeated(step, options, m, how == How::planned));
      if (how == How::planned) m.report = report;
      (how == How::eager ? m.eager : m.padded) = report.seconds;
      for (std::int64_t id : m.planned.ended) seen.end(id);
    }
    return request_.generate > 0 && how != How::padded ? generation(how, seen) : Status();
  }

  /// Repeats the generated steps from their first one; the first run is not counted.
  Status generation(How how, KvCache& seen) {
    std::vector<PlannedStep> steps;
    for (const MeasuredStep& m : report_.steps) steps.push_back(m.planned);
    Step first = continuation(steps);
    first.cache = &seen;
    RunOptions options;
    options.pad = how != How::eager;
    std::vector<double> seconds;
    Generation done;
    for (int i = 0; i <= request_.repeats; ++i) {
      log_.progress({fmt::format("generating {}", kHowNames[static_cast<std::size_t>(how)]),
                     static_cast<std::size_t>(i), static_cast<std::size_t>(request_.repeats) + 1,
                     "runs"});
      const auto start = std::chrono::steady_clock::now();
      done = PW_TRY(generate(graph_, first, {request_.generate, request_.ends},
                             [&](const Step& step, const GenerationLimits& left) {
                               return executable_.run_some(step, weights_, left, options);
                             }));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (i > 0) seconds.push_back(took.count() / static_cast<double>(done.steps));
    }
    if (!report_.generation) report_.generation.emplace();
    MeasuredGeneration& out = *report_.generation;
    (how == How::eager ? out.eager : out.seconds) = median(std::move(seconds));
    if (how == How::planned) {
      out.steps = done.steps;
      out.launches = done.launches;
      out.sequences = static_cast<std::int64_t>(first.sequences.size());
    }
    return {};
  }

  /// Repeats one step; the first run is not counted.
  Result<StepReport> repeated(const Step& step, const RunOptions& options, MeasuredStep& m,
                              bool keep_pieces) {
    std::vector<double> seconds;
    std::vector<std::vector<double>> pieces(report_.record.pieces->pieces.size());
    StepReport report;
    for (int i = 0; i <= request_.repeats; ++i) {
      report = PW_TRY(executable_.run(step, weights_, options)).report;
      if (i == 0) continue;
      seconds.push_back(report.seconds);
      for (std::size_t p = 0; p < pieces.size(); ++p) pieces[p].push_back(report.piece_seconds[p]);
    }
    report.seconds = median(std::move(seconds));
    if (keep_pieces)
      for (std::vector<double>& times : pieces) m.piece_seconds.push_back(median(std::move(times)));
    return report;
  }

  const BenchRequest& request_;
  const Graph& graph_;
  StepExecutable& executable_;
  std::vector<Weights>& weights_;
  BenchReport& report_;
  const Log& log_;
};

}  // namespace

Result<BenchReport> bench_model(const ContextPtr& context, const BenchRequest& request,
                                const Log& log) {
  PW_TRY(check_number("repeats", request.repeats, 1, 100000));
  const auto engine = PW_TRY(open_engine(request.engines, request.backend, request.engine));
  const LoadedRules rules = PW_TRY(load_rules(context, request.rules, log));
  Graph graph = PW_TRY(load_logged_graph(context, request.graph, log));
  PW_TRY(take_extents(request, graph, log));
  BenchReport out;
  out.weighted = !request.histogram.empty();
  out.steps = PW_TRY(steps_of(request, graph));
  std::vector<GraphVariant> variants =
      PW_TRY(make_variants(graph, rules, request.rules.pipeline, log, false,
                           {.keep_transpositions = request.engine.stream_weights}));
  PW_TRY(need_one(variants, "bench measures one graph: use a pipeline without ranges"));
  std::vector<PlannedStep> all;
  for (const MeasuredStep& m : out.steps) all.push_back(m.planned);
  PW_TRY(check_generation(request, graph, all));
  all = with_generated(request, std::move(all));
  PW_TRY(check_steps(graph, all));
  PW_TRY(cut_and_plan(request, rules, variants.front(), out.record, log));
  PW_TRY(check_sizes(out.record.plan, all));
  PW_TRY(check_conditions(graph, out.record.plan, all));
  log.say(split_summary(*out.record.pieces));
  log.say(plan_summary(out.record.plan));
  std::vector<Weights> weights = weights_of_ranks(graph, request.engine.seed, 1);
  PW_TRY(give_contents_of(request, graph, weights.front(), log));
  PW_TRY(compute_at_load(*engine, out.record, weights, nullptr, log));
  const auto executable = PW_TRY(
      build_executable(*engine, variants.front().result.graph, out.record, weights.front(), log));
  PW_TRY(Measurement(request, graph, *executable, weights, out, log).run());
  PW_TRY(weights.front().check_files());
  finish_record(*executable, out.record, log);
  return out;
}

Table BenchReport::step_table() const {
  std::vector<Column> columns = {"tokens",
                                 "sequences",
                                 "runs as",
                                 "mode",
                                 "key",
                                 "padding",
                                 {"time µs", "time_s"},
                                 {"eager µs", "eager_s"},
                                 "kernels",
                                 "library",
                                 "graphs"};
  if (weighted) columns.insert(columns.begin() + 2, "count");
  Table table(columns);
  for (const MeasuredStep& m : steps) {
    const StepReport& r = m.report;
    std::vector<Cell> row = {r.tokens,
                             m.planned.step.sequences.size(),
                             r.padded,
                             std::string(name(r.mode)),
                             r.key,
                             r.padded - r.tokens,
                             microseconds(r.seconds),
                             microseconds(m.eager),
                             r.launches.kernels,
                             r.launches.library,
                             r.launches.graphs};
    if (weighted) row.insert(row.begin() + 2, m.count);
    table.add(std::move(row));
  }
  return table;
}

Table BenchReport::generation_table() const {
  Table table({"generated steps",
               "sequences",
               "launches",
               {"time µs a step", "time_s"},
               {"eager µs a step", "eager_s"}});
  table.add({generation->steps, generation->sequences, generation->launches,
             microseconds(generation->seconds), microseconds(generation->eager)});
  return table;
}

Table BenchReport::piece_table() const {
  Table table({"class",
               "pieces",
               "runs as",
               "mode",
               {"median µs", "median_s"},
               {"share %", "share_percent"}});
  std::map<std::tuple<std::size_t, std::int64_t, std::string>, std::vector<double>> times;
  std::map<std::int64_t, double> whole;
  for (const MeasuredStep& m : steps) {
    if (m.report.whole) continue;
    for (std::size_t p = 0; p < m.piece_seconds.size(); ++p) {
      const Piece& piece = record.pieces->pieces[PieceId(p)];
      const bool captured = m.report.mode == StepMode::captured && record.plan.steps[p].captured;
      times[{piece.piece_class.index, m.report.padded, captured ? "captured" : "eager"}].push_back(
          m.piece_seconds[p]);
      whole[m.report.padded] += m.piece_seconds[p];
    }
  }
  for (const auto& [key, values] : times) {
    const auto& [c, rows, mode] = key;
    const PieceClass& piece_class = record.pieces->classes[PieceClassId(c)];
    double sum = 0;
    for (double v : values) sum += v;
    const double share = whole[rows] > 0 ? 100 * sum / whole[rows] : 0;
    table.add({piece_class.name, piece_class.members.size(), rows, mode,
               microseconds(median(values)), real_cell(share, fmt::format("{:.1f}", share))});
  }
  return table;
}

Table BenchReport::totals() const {
  double planned = 0, eager = 0, padded = 0;
  for (const MeasuredStep& m : steps) {
    const auto n = static_cast<double>(m.count);
    planned += n * m.report.seconds;
    eager += n * m.eager;
    padded += n * m.padded;
  }
  Table table({"all steps", {"time µs", "time_s"}, "of planned"});
  const auto add = [&](const std::string& what, double seconds) {
    const double ratio = planned > 0 ? seconds / planned : 0;
    table.add({what, microseconds(seconds), real_cell(ratio, fmt::format("{:.3f}", ratio))});
  };
  add("as planned", planned);
  add("eager, at their own sizes", eager);
  if (!record.plan.tokens.empty()) add(fmt::format("all padded to {}", most_rows), padded);
  return table;
}

}  // namespace pw
