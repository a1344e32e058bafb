// Exports the command bench: what the steps of a planned graph take.
#include <algorithm>
#include <map>
#include <tuple>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "splitter/histogram.hpp"

namespace pw::cli {
namespace {

struct BenchArgs : EngineArgs {
  std::string histogram;
  int repeats = 5;
  bool pieces = false;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string microseconds(double seconds) { return fmt::format("{:.1f}", 1e6 * seconds); }

/// A step, how often it occurs, and what was measured of it. Seconds are medians.
struct Measured {
  PlannedStep planned;
  std::int64_t count = 1;
  StepReport report = {};  ///< as planned
  double eager = 0;        ///< at its own size, nothing captured
  double padded = 0;       ///< to the most rows that any step runs as
  std::vector<double> piece_seconds = {};
};

std::vector<Measured> steps_of(const Session& session, const BenchArgs& args, const Graph& graph) {
  std::vector<Measured> out;
  if (args.histogram.empty()) {
    for (PlannedStep& planned : wanted_steps(session, args, graph))
      out.push_back({std::move(planned)});
    return out;
  }
  const auto made = histogram_named(args.histogram);
  const Histogram histogram =
      made ? *made
           : session.need(read_histogram(session.need(read_file(args.histogram)), args.histogram));
  for (const auto& [tokens, count] : histogram.steps)
    out.push_back({{one_sequence(tokens), {}}, count});
  return out;
}

class Bench {
 public:
  Bench(const Session& session, const BenchArgs& args) : session_(session), args_(args) {}

  void run() {
    backend_ = backend_named(session_, args_);
    if (args_.backend == "cuda")
      device_ = open_device(session_, args_.driver, args_.strict, args_.seed);
    const LoadedRules rules = load(session_, args_.rules);
    const Graph original = load(session_, args_.graph);
    steps_ = steps_of(session_, args_, original);
    variants_ = make_variants(session_, original, rules, args_.rules.pipeline, false);
    if (variants_.size() > 1)
      session_.die("the pipeline makes a graph for each of several ranges of tokens",
                   "bench measures one graph: name a pipeline without ranges", kUsage);
    std::vector<PlannedStep> all;
    for (const Measured& m : steps_) all.push_back(m.planned);
    check_declared(session_, original, all);
    prepare(session_, args_, rules, variants_.front(), record_);
    check_sizes(session_, record_.plan, all);
    session_.say(split_summary(*record_.pieces));
    session_.say(plan_summary(record_.plan));
    weights_.emplace_back(original, args_.seed);
    give_weights(session_, args_, original, weights_.front());
    engine_.emplace(session_, args_, variants_.front().result.graph, record_, *backend_,
                    device_.get(), weights_.front());
    measure();
    engine_->finish(record_);
    print();
  }

 private:
  enum class How : std::uint8_t { planned, eager, padded };

  /// One pass over all steps, in order: sequences go on from step to step.
  void measure() {
    pass(How::planned);
    for (const Measured& m : steps_) most_rows_ = std::max(most_rows_, m.report.padded);
    pass(How::eager);
    pass(How::padded);
  }

  void pass(How how) {
    constexpr const char* kNames[] = {"as planned", "eagerly", "padded"};
    KvCache seen;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Measured& m = steps_[i];
      session_.progress(fmt::format("step {} of {}, {}", i + 1, steps_.size(),
                                    kNames[static_cast<std::size_t>(how)]));
      Step step = m.planned.step;
      step.cache = args_.steps.empty() ? nullptr : &seen;
      RunOptions options;
      options.pad = how != How::eager;
      options.rows = how == How::padded && !record_.plan.tokens.empty() ? most_rows_ : 0;
      const StepReport report = repeated(step, options, m, how == How::planned);
      if (how == How::planned) m.report = report;
      (how == How::eager ? m.eager : m.padded) = report.seconds;
      for (std::int64_t id : m.planned.ended) seen.end(id);
    }
  }

  /// The same step again and again, once more than is counted.
  StepReport repeated(const Step& step, const RunOptions& options, Measured& m, bool keep_pieces) {
    std::vector<double> seconds;
    std::vector<std::vector<double>> pieces(record_.pieces->pieces.size());
    StepReport report;
    for (int i = 0; i <= args_.repeats; ++i) {
      report = need_run(session_, engine_->run(step, weights_, options)).report;
      if (i == 0) continue;
      seconds.push_back(report.seconds);
      for (std::size_t p = 0; p < pieces.size(); ++p) pieces[p].push_back(report.piece_seconds[p]);
    }
    report.seconds = median(std::move(seconds));
    if (keep_pieces)
      for (std::vector<double>& times : pieces) m.piece_seconds.push_back(median(std::move(times)));
    return report;
  }

  void print() const {
    const auto put = [&](const Table& table) {
      print_out(table.print(session_.options.format) +
                (session_.options.format == "table" ? "\n" : ""));
    };
    put(step_table());
    if (args_.pieces) put(piece_times());
    put(totals());
  }

  [[nodiscard]] Table step_table() const {
    std::vector<std::string> columns = {"tokens",  "sequences", "runs as", "mode",
                                        "key",     "padding",   "time µs", "eager µs",
                                        "kernels", "library",   "graphs"};
    if (!args_.histogram.empty()) columns.insert(columns.begin() + 2, "count");
    Table table(columns);
    for (const Measured& m : steps_) {
      const StepReport& r = m.report;
      std::vector<std::string> row = {std::to_string(r.tokens),
                                      std::to_string(m.planned.step.sequences.size()),
                                      std::to_string(r.padded),
                                      r.mode,
                                      r.key,
                                      std::to_string(r.padded - r.tokens),
                                      microseconds(r.seconds),
                                      microseconds(m.eager),
                                      std::to_string(r.launches.kernels),
                                      std::to_string(r.launches.library),
                                      std::to_string(r.launches.graphs)};
      if (!args_.histogram.empty()) row.insert(row.begin() + 2, std::to_string(m.count));
      table.add(std::move(row));
    }
    return table;
  }

  /// Medians over the pieces of a class and the steps of a size.
  [[nodiscard]] Table piece_times() const {
    Table table({"class", "pieces", "runs as", "mode", "median µs", "share %"});
    std::map<std::tuple<std::size_t, std::int64_t, std::string>, std::vector<double>> times;
    std::map<std::int64_t, double> whole;
    for (const Measured& m : steps_) {
      if (m.report.whole) continue;
      for (std::size_t p = 0; p < m.piece_seconds.size(); ++p) {
        const Piece& piece = record_.pieces->pieces[PieceId(p)];
        const bool captured = m.report.mode == "captured" && record_.plan.steps[p].captured;
        times[{piece.piece_class.index, m.report.padded, captured ? "captured" : "eager"}]
            .push_back(m.piece_seconds[p]);
        whole[m.report.padded] += m.piece_seconds[p];
      }
    }
    for (const auto& [key, values] : times) {
      const auto& [c, rows, mode] = key;
      const PieceClass& piece_class = record_.pieces->classes[PieceClassId(c)];
      double sum = 0;
      for (double v : values) sum += v;
      table.add({piece_class.name, std::to_string(piece_class.members.size()), std::to_string(rows),
                 mode, microseconds(median(values)),
                 fmt::format("{:.1f}", whole[rows] > 0 ? 100 * sum / whole[rows] : 0)});
    }
    return table;
  }

  [[nodiscard]] Table totals() const {
    double planned = 0, eager = 0, padded = 0;
    for (const Measured& m : steps_) {
      const auto n = static_cast<double>(m.count);
      planned += n * m.report.seconds;
      eager += n * m.eager;
      padded += n * m.padded;
    }
    Table table({"all steps", "time µs", "of planned"});
    const auto add = [&](const std::string& what, double seconds) {
      table.add({what, microseconds(seconds),
                 fmt::format("{:.3f}", planned > 0 ? seconds / planned : 0)});
    };
    add("as planned", planned);
    add("eager, at their own sizes", eager);
    if (!record_.plan.tokens.empty()) add(fmt::format("all padded to {}", most_rows_), padded);
    return table;
  }

  const Session& session_;
  const BenchArgs& args_;
  std::vector<Measured> steps_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Device> device_;
  std::vector<Variant> variants_;
  RunRecord record_;
  std::vector<Weights> weights_;
  std::optional<Engine> engine_;
  std::int64_t most_rows_ = 0;
};

}  // namespace

void add_bench_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<BenchArgs>();
  auto* sub = app.add_subcommand(
      "bench", "Measure steps of a planned graph: as planned, eager, and padded to the most rows");
  args->add_to(*sub);
  sub->add_option("--histogram", args->histogram,
                  "instead of --tokens: a step of each token count, the totals weighted by how "
                  "often it occurs; a file as pwr sizes reads, or lognormal, bimodal, uniform")
      ->type_name("FILE");
  sub->add_option("--repeats", args->repeats, "runs of each step; times are medians")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  sub->add_flag("--pieces", args->pieces, "times by piece class and size too");
  sub->footer(
      "Examples:\n"
      "  pwr bench model.json -r llm -p o2 --backend cpu --tokens 1,7,64\n"
      "  pwr bench model.json -r llm -p o2 --backend cpu --steps traffic.txt --pieces\n"
      "  pwr bench model.json --backend cuda --driver host --sizes 1,2,4,8 --tokens 1,3,8 "
      "--format json\n"
      "  pwr bench model.json --backend cpu --histogram server.log --repeats 20");
  sub->callback([args, &options] {
    const Session session(options);
    Bench(session, *args).run();
  });
}

}  // namespace pw::cli
