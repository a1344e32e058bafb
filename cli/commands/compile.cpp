#include "pipeline/run/compile.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/printable.hpp"
#include "cli/commands.hpp"
#include "cli/parts/labs.hpp"
#include "cli/planning.hpp"
#include "cli/settings.hpp"
#include "pipeline/run/artifact.hpp"
#include "pipeline/run/dump.hpp"
#include "pipeline/symbol_values.hpp"

namespace pw::cli {
namespace {

struct CompileArgs : SplitArgs {
  CompileRequest compile;  ///< fields without an option in SplitArgs
  std::string grouping = "auto", dump;
  std::string backend = "cpu", driver = "cuda";  ///< for an artifact
  QualityArgs quality;
};

void say_compiled(const Session& session, const CompiledGraph& done, const std::string& folder) {
  if (done.cache) {
    session.say(fmt::format("cubins: {} from the cache, {} compiled now", done.cache->found,
                            done.cache->made));
    if (done.cache->evicted > 0)
      session.say(fmt::format("  removed {} damaged objects from the cache", done.cache->evicted));
    if (!done.cache_problem.empty()) session.say("  cubins are not cached: " + done.cache_problem);
  }
  session.say("sources, cubins, plan.json and report are in " + folder);
}

/// Writes an artifact, which `pwr run` executes without a compiler.
void run_artifact(const Session& session, const CompileArgs& args) {
  RunRequest request;
  request.graph = args.graph;
  request.rules = args.rules;
  request.plan = args.plan.request(session);
  request.engines = session.engines();
  request.backend = args.backend;
  request.engine.driver = args.driver;
  request.engine.strict = args.compile.strict;
  request.engine.fuse = args.grouping == "auto";
  request.engine.schedules = args.compile.schedules;
  session.need(write_artifact(session.context, request, args.output, session.log()));
}

void check_arguments(const CompileArgs& args) {
  if (args.graph.path.empty()) throw CLI::RequiredError("graph");
  if (args.output.empty()) throw CLI::RequiredError("--output");
}

void run_compile(const Options& options, const CompileArgs& args) {
  if (args.quality.wanted && args.graph.path.empty()) {
    const Session session(options);
    return labs()->judge_functions(session, args.quality, args.compile, args.output, args.dump);
  }
  check_arguments(args);
  Session session(options);
  if (args.output.ends_with(".pwx")) return run_artifact(session, args);
  const LoadedRules rules = load(session, args.rules);
  Graph graph = load(session, args.graph);
  name_tokens(graph, session.log());
  std::vector<GraphVariant> variants = session.need(
      make_variants(graph, rules, args.rules.pipeline, session.log(), !args.dump.empty(),
                    {.keep_transpositions = args.compile.stream_weights}));
  session.need(need_one(variants, "`pwr opt -o` writes each to a file, which can be compiled"));
  CompileRequest request = args.compile;
  request.plan = args.plan.request(session);
  request.fuse = args.grouping == "auto";
  request.output = args.output;
  request.schedule = args.quality.wanted;
  const CompiledGraph done =
      session.need(compile_graph(variants.front(), rules, request, session.log()));
  if (args.quality.wanted)
    labs()->judge_plan(session, args.quality, done, args.output);
  else
    print_out(options.format == "json" ? printable_json(cuda::to_json(done.report))
                                       : cuda::print(done.report));
  say_compiled(session, done, args.output);
  if (!args.dump.empty())
    session.need(write_dump(done.record, rules.set, args.dump, session.log()));
  if (done.report.failed() > 0)
    session.die(fmt::format("{} did not compile", counted(done.report.failed(), "kernel")),
                "the report holds the compiler's messages", kInternalError);
}

struct TuneArgs : SplitArgs {
  TuneRequest tune;  ///< fields without an option in SplitArgs
  std::string tokens = "1,16,256,4096";
};

void run_tune(const Options& options, const TuneArgs& args) {
  Session session(options);
  TuneRequest request = args.tune;
  request.tokens = session.need(parse_numbers(args.tokens, 1, std::int64_t{1} << 24));
  request.output = args.output;
  Tuner tuner = session.need(Tuner::open(request));
  const TunedGraph tuned = session.need(tuner.tune(prepared(session, args), session.log()));
  print_out(schedule_table(tuned).print(options.format));
  if (!args.output.empty()) {
    session.need(write_file(args.output, tuned.schedules.to_json()));
    session.say(fmt::format("{} {} in {}; use it with `pwr compile --schedules {}`",
                            counted(tuned.schedules.entries().size(), "schedule"),
                            are(tuned.schedules.entries().size()), args.output, args.output));
  }
  session.say(
      fmt::format("{} of {} differ from the default schedule", tuned.gains, tuned.rows.size()));
}

void add_compile_command(CLI::App& app, const Options& options) {
  auto compile = std::make_shared<CompileArgs>();
  auto* sub = app.add_subcommand(
      "compile", "Rewrite, split, plan, and emit each piece's kernels as CUDA C++ and cubins");
  compile->graph.add_to(*sub, false);
  compile->rules.add_to(*sub);
  compile->plan.add_to(*sub);
  sub->add_option("-o,--output", compile->output,
                  "output folder for sources, cubins, plan.json and the report; or model.pwx: a "
                  "single file that `pwr run` executes without a compiler")
      ->type_name("DIR|FILE.pwx");
  sub->add_option(
         "--dump", compile->dump,
         "also write the graph before and after each pass, the pieces, all sources, plan.json and "
         "stats.json to this folder; with --quality and no graph, write each kernel's cubin")
      ->type_name("DIR");
  add_setting(*sub, "--arch", compile->compile.archs, CLI::IsMember(cuda_architectures()),
              "target architectures: sm_80,sm_90,sm_100,sm_120")
      ->delimiter(',');
  add_setting(*sub, "--grouping", compile->grouping, CLI::IsMember({"auto", "none"}),
              "auto: fuse neighbouring row ops into one kernel; none: one kernel for each op, "
              "including fused ops");
  add_switch(*sub, "--strict", compile->compile.strict,
             "use exact division and roots and no fused multiply-add, to match the interpreter "
             "bit for bit");
  add_setting(*sub, "--schedules", compile->compile.schedules, "FILE|none",
              "schedule table written by `pwr tune`, or none; default: the built-in table");
  sub->add_option("--tokens", compile->compile.tokens,
                  "token count to select schedules for; default: the plan's largest capture size")
      ->check(CLI::Range(1, 1 << 24))
      ->configurable();
  add_default(*sub, "--backend", compile->backend,
              "with a .pwx: the backend to compile for, as in `pwr run`");
  add_setting(*sub, "--driver", compile->driver, CLI::IsMember({"cuda", "host"}),
              "with a .pwx for cuda: the driver, cuda or host");
  add_switch(*sub, "--stream-weights", compile->compile.stream_weights,
             "with --quality: the launches of a step, as in `pwr run`");
  add_switch(*sub, "--programmatic-edges", compile->compile.programmatic_edges,
             "with --quality: the edges of a step, as in `pwr run`");
  add_switch(*sub, "--sources-only", compile->compile.sources_only, "do not call NVRTC");
  if (labs() != nullptr) labs()->add_quality_options(*sub, compile->quality);
  sub->footer(
      "Examples:\n  pwr compile model.json -r llm -p o2 -o compiled/\n  pwr compile model.json "
      "-o compiled/ --arch sm_80,sm_90 --grouping none\n  pwr compile model.json -r llm -p o2 "
      "-o model.pwx && pwr run model.pwx --tokens 1,7\n  pwr compile --quality --functions "
      "rms_norm "
      "--widths 1024,4096 --arch sm_90 -o quality.html");
  sub->callback([compile, &options] { run_compile(options, *compile); });
}

void add_tune_command(CLI::App& app, const Options& options) {
  auto tune = std::make_shared<TuneArgs>();
  auto* sub =
      app.add_subcommand("tune",
                         "Find the best schedule for each kernel: compile candidates, drop those "
                         "that spill, time the rest");
  tune->graph.add_to(*sub);
  tune->rules.add_to(*sub);
  tune->plan.add_to(*sub);
  add_file(*sub, "-o,--output", tune->output,
           "output table; existing entries for other kernels are preserved");
  add_setting(*sub, "--arch", tune->tune.archs, CLI::IsMember(cuda_architectures()),
              "target architectures: sm_80,sm_90,sm_100,sm_120")
      ->delimiter(',');
  sub->add_option("--tokens", tune->tokens, "token counts to tune for")
      ->type_name("LIST")
      ->capture_default_str()
      ->configurable();
  add_switch(*sub, "--strict", tune->tune.strict, "tune the kernels of `pwr compile --strict`");
  add_switch(*sub, "--measure", tune->tune.measure,
             "time candidates on the local GPU instead of with a device model; name its "
             "architecture with --arch");
  sub->footer(
      "A schedule changes the speed of a kernel, but not its results.\n"
      "Example:\n"
      "  pwr tune model.json -r llm -p o2 --tokens 1,64,4096 -o schedules.json\n"
      "  pwr compile model.json -r llm -p o2 --schedules schedules.json -o compiled/");
  sub->callback([tune, &options] { run_tune(options, *tune); });
}

}  // namespace

void add_compile_commands(CLI::App& app, const Options& options) {
  add_compile_command(app, options);
  add_tune_command(app, options);
}

}  // namespace pw::cli
