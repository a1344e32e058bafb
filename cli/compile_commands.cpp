// Exports the commands that make kernels: compile, tune.
#include <filesystem>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/cuda/cuda_driver.hpp"
#include "backends/cuda/tuning.hpp"
#include "base/file.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/planning.hpp"
#include "pipeline/dump.hpp"
#include "pipeline/folder.hpp"

namespace pw::cli {
namespace {

int all_cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

struct CompileArgs : SplitArgs {
  std::vector<std::string> archs{"sm_90"};
  std::string grouping = "auto";
  bool strict = false;
  bool sources_only = false;
  std::string schedules, dump;
  std::int64_t tokens = 0;
};

void run_compile(const Options& options, const CompileArgs& args) {
  Session session(options);
  const LoadedRules rules = load(session, args.rules);
  std::vector<GraphVariant> variants = session.need(make_variants(
      load(session, args.graph), rules, args.rules.pipeline, session.log(), !args.dump.empty()));
  session.need(need_one(variants, "`pwr opt -o` writes each to a file, which can be compiled"));
  const Graph& graph = variants.front().result.graph;
  const PlanRequest request = args.plan.request(session);
  RunRecord record;
  record.fuse = args.grouping == "auto";
  record.schedules = args.schedules;
  record.arch = args.archs.empty() ? "" : args.archs.front();
  record.pieces = session.need(cut_graph(graph, rules, request));
  record.plan = session.need(plan_graph(*record.pieces, graph, rules, request, session.log()));
  const StitchedGraph& pieces = *record.pieces;
  const Plan& plan = record.plan;
  cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (!nvrtc.present() && !args.sources_only)
    session.say("NVRTC is absent, so sources only: " + nvrtc.state());
  cuda::CompileOptions compile;
  compile.archs = args.archs;
  compile.strict = args.strict;
  compile.grouping.automatic = args.grouping == "auto";
  compile.threads = all_cores();
  compile.sources_only = args.sources_only;
  const auto schedules = session.need(cuda::ScheduleTable::named(args.schedules));
  compile.schedules = schedules.get();
  const std::int64_t largest = plan.capture.sizes.empty() ? 1 : plan.capture.sizes.back();
  compile.tokens = args.tokens > 0 ? args.tokens : largest;
  std::optional<CompileCache> cache;
  if (nvrtc.present() && !args.sources_only) {
    cache.emplace(CacheOptions::from_environment());
    compile.cache = &*cache;
  }
  session.progress("compiling");
  cuda::CompileReport report = cuda::compile_pieces(pieces, compile, nvrtc);
  session.need(make_folder(args.output));
  session.need(cuda::write_compiled(report, args.output, plan_to_json(plan, pieces)));
  print_out(options.format == "json" ? printable_json(cuda::to_json(report)) : cuda::print(report));
  if (cache) {
    const CacheCounts counts = cache->counts();
    session.say(
        fmt::format("cubins: {} from the cache, {} compiled now", counts.found, counts.made));
    if (counts.evicted > 0)
      session.say(
          fmt::format("  {} damaged objects of the cache were thrown away", counts.evicted));
    if (const std::string why = cache->problem(); !why.empty())
      session.say("  cubins are not kept: " + why);
  }
  session.say("sources, cubins, plan.json and report are in " + args.output);
  if (!args.dump.empty()) {
    record.versions = std::move(variants.front().versions);
    record.rewrite = variants.front().result.report;
    session.need(write_dump(record, rules.set, args.dump, session.log()));
  }
  if (report.failed() > 0)
    session.die(fmt::format("{} kernels did not compile", report.failed()),
                "the report holds the compiler's messages", kInternalError);
}

struct TuneArgs : SplitArgs {
  std::vector<std::string> archs{"sm_90"};
  std::string tokens = "1,16,256,4096";
  bool strict = false, measure = false;
};

std::string described(const cuda::Schedule& s) {
  return fmt::format("block {}, passes {}, resident {}, kept {}", s.block, s.passes, s.resident,
                     s.kept_words);
}

void run_tune(const Options& options, const TuneArgs& args) {
  Session session(options);
  cuda::TuneOptions tune;
  tune.tokens = session.need(parse_numbers(args.tokens, 1, std::int64_t{1} << 24));
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (!nvrtc.present())
    session.die("candidates cannot be compiled: " + nvrtc.state(),
                "`pwr doctor` says where NVRTC is sought", kMissingCapability);
  CompileCache cache(CacheOptions::from_environment());
  std::unique_ptr<cuda::CudaDriver> device;
  if (args.measure) {
    cuda::CudaDriverOptions how;
    how.strict = args.strict;
    how.cache = &cache;
    device = session.need(cuda::CudaDriver::open(how), kMissingCapability);
    tune.device = device.get();
  }
  cuda::ScheduleTable found;
  if (!args.output.empty() && std::filesystem::exists(args.output))
    found = session.need(cuda::ScheduleTable::read(args.output));
  const auto [rules, graph, pieces] = prepared(session, args);
  cuda::CompileOptions sources;
  sources.sources_only = true;
  const cuda::CompileReport kernels = cuda::compile_pieces(pieces, sources, nvrtc);
  tune.strict = args.strict;
  tune.threads = all_cores();
  tune.cache = &cache;
  tune.progress = [&](std::size_t done) {
    session.progress(fmt::format("tuning: {} of {} kernels", done, kernels.kernels.size()));
  };
  Table table({"kernel", "arch", "tokens", "rows", "bytes", "candidates", "spill", "usual us",
               "tuned us", "ratio", "schedule"});
  std::size_t gains = 0;
  for (const std::string& arch : args.archs) {
    tune.arch = arch;
    const cuda::TuneReport report =
        session.need(cuda::tune(kernels, pieces.stitch.facts.tokens(), tune, nvrtc));
    for (const cuda::Tuned& t : report.tuned) {
      const cuda::TunedSchedule& c = t.chosen;
      gains += c.schedule == cuda::Schedule() ? 0 : 1;
      table.add({c.op, arch, std::to_string(t.tokens), std::to_string(c.rows),
                 std::to_string(t.bytes), std::to_string(t.candidates), std::to_string(t.spilled),
                 fmt::format("{:.2f}", c.default_seconds * 1e6),
                 fmt::format("{:.2f}", c.seconds * 1e6),
                 fmt::format("{:.2f}", c.default_seconds / c.seconds), described(c.schedule)});
      found.put(c);
    }
    for (const std::string& why : report.skipped) session.say("not tuned: " + why);
    session.say(args.measure
                    ? fmt::format("{}: times are measured on {}", arch, report.by)
                    : fmt::format("{}: times are by the {}, no measurements", arch, report.by));
  }
  print_out(table.print(options.format));
  if (!args.output.empty()) {
    session.need(write_file(args.output, found.to_json()));
    session.say(fmt::format("{} schedules are in {}; use it with `pwr compile --schedules {}`",
                            found.entries().size(), args.output, args.output));
  }
  session.say(fmt::format("{} of {} are not the usual schedule", gains, table.rows().size()));
}

}  // namespace

void add_compile_commands(CLI::App& app, const Options& options) {
  auto compile = std::make_shared<CompileArgs>();
  auto* sub = app.add_subcommand(
      "compile", "Rewrite, split, plan, and emit each piece's kernels as CUDA C++ and cubins");
  compile->graph.add_to(*sub);
  compile->rules.add_to(*sub);
  compile->plan.add_to(*sub);
  sub->add_option("-o,--output", compile->output,
                  "the folder for sources, cubins, plan.json and the report")
      ->type_name("DIR")
      ->required();
  sub->add_option("--dump", compile->dump,
                  "write the graph before and after each pass, the pieces, all sources, plan.json "
                  "and stats.json into this folder too")
      ->type_name("DIR");
  sub->add_option("--arch", compile->archs, "the architectures: sm_80,sm_90,sm_100")
      ->delimiter(',')
      ->check(CLI::IsMember({"sm_80", "sm_90", "sm_100"}))
      ->capture_default_str();
  sub->add_option("--grouping", compile->grouping,
                  "auto: neighbouring row ops are one kernel; none: each op is its own, a fused op "
                  "too")
      ->check(CLI::IsMember({"auto", "none"}))
      ->capture_default_str();
  sub->add_flag("--strict", compile->strict,
                "exact division and roots, no fused multiply-add: the interpreter's bits");
  sub->add_option("--schedules", compile->schedules,
                  "a table that `pwr tune` wrote, or none; the table of the program if left out")
      ->type_name("FILE|none");
  sub->add_option(
         "--tokens", compile->tokens,
         "tokens that schedules are taken for; the plan's largest capture size if left out")
      ->check(CLI::Range(1, 1 << 24));
  sub->add_flag("--sources-only", compile->sources_only, "do not call NVRTC");
  sub->footer(
      "Example:\n  pwr compile model.json -r llm -p o2 -o compiled/\n  pwr compile model.json "
      "-o compiled/ --arch sm_80,sm_90 --grouping none");
  sub->callback([compile, &options] { run_compile(options, *compile); });

  auto tune = std::make_shared<TuneArgs>();
  sub = app.add_subcommand(
      "tune", "Find each kernel's schedule: compile candidates, drop what spills, time the rest");
  tune->graph.add_to(*sub);
  tune->rules.add_to(*sub);
  tune->plan.add_to(*sub);
  sub->add_option("-o,--output", tune->output,
                  "the table; entries of other kernels that are there already stay")
      ->type_name("FILE");
  sub->add_option("--arch", tune->archs, "the architectures: sm_80,sm_90,sm_100")
      ->delimiter(',')
      ->check(CLI::IsMember({"sm_80", "sm_90", "sm_100"}))
      ->capture_default_str();
  sub->add_option("--tokens", tune->tokens, "token counts, each tuned for")
      ->type_name("LIST")
      ->capture_default_str();
  sub->add_flag("--strict", tune->strict, "tune the kernels of `pwr compile --strict`");
  sub->add_flag(
      "--measure", tune->measure,
      "time candidates on the device that is here instead of by the model of one; name its "
      "architecture with --arch");
  sub->footer(
      "A schedule changes how fast a kernel is, and none of its bits.\n"
      "Example:\n  pwr tune model.json -r llm -p o2 --tokens 1,64,4096 -o schedules.json\n"
      "  pwr compile model.json -r llm -p o2 --schedules schedules.json -o compiled/");
  sub->callback([tune, &options] { run_tune(options, *tune); });
}

}  // namespace pw::cli
