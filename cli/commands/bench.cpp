#include "pipeline/run/bench.hpp"

#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "cli/settings.hpp"

namespace pw::cli {
namespace {

struct BenchArgs : EngineArgs {
  BenchRequest bench;  ///< fields without an option in EngineArgs
  bool pieces = false;
};

void run_bench(const Options& options, const BenchArgs& args) {
  const Session session(options);
  BenchRequest request = args.bench;
  args.fill(session, request);
  const BenchReport report = session.need(bench_model(session.context, request, session.log()));
  Answer answer;
  answer.add("steps", report.step_table());
  if (report.generation) answer.add("generation", report.generation_table());
  if (args.pieces) answer.add("pieces", report.piece_table());
  answer.add("totals", report.totals());
  print_out(answer.print(options.format));
}

}  // namespace

void add_bench_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<BenchArgs>();
  auto* sub = app.add_subcommand(
      "bench",
      "Time the steps of a planned graph: as planned, eagerly, and padded to the maximum size");
  args->add_to(*sub);
  args->add_generation(*sub);
  add_setting(
      *sub, "--histogram", args->bench.histogram, "FILE",
      "run a step for each token count of this histogram and weight the totals by frequency "
      "(instead of --tokens): a file in a format of pwr sizes, or lognormal, bimodal, uniform");
  add_setting(*sub, "--repeats", args->bench.repeats, CLI::Range(1, 100000),
              "runs of each step; the median is reported");
  add_switch(*sub, "--pieces", args->pieces, "also report times by piece class and size");
  sub->footer(
      "Examples:\n"
      "  pwr bench model.json -r llm -p o2 --backend cpu --tokens 1,7,64\n"
      "  pwr bench model.json -r llm -p o2 --backend cpu --steps traffic.txt --pieces\n"
      "  pwr bench model.json --backend cuda --driver host --sizes 1,2,4,8 --tokens 1,3,8 "
      "--format json\n"
      "  pwr bench model.json --backend cpu --histogram server.log --repeats 20");
  sub->callback([args, &options] { run_bench(options, *args); });
}

}  // namespace pw::cli
