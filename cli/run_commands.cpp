// Exports the commands run and report: the main job, from a model's graph to numbers, and what it
// says.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/file.hpp"
#include "base/standard_output.hpp"
#include "cli/command_text.hpp"
#include "cli/commands.hpp"
#include "cli/engine.hpp"
#include "pipeline/dump.hpp"
#include "pipeline/report.hpp"
#include "pipeline/run.hpp"

namespace pw::cli {
namespace {

struct RunArgs : EngineArgs {
  RunRequest run;  ///< what is no option of EngineArgs
  std::string report, dump;
  std::string replicated;  ///< input names, or `all`
  bool no_pad = false;
  std::string output = "-";    ///< of report
  void add_to(CLI::App& sub);  ///< what a run takes, without where its answers go
  [[nodiscard]] RunRequest request(const Session& session) const;
};

RunRequest RunArgs::request(const Session& session) const {
  RunRequest out = run;
  fill(session, out);
  out.pad = !no_pad;
  out.command = shown_command("pwr", session.options.arguments);
  out.replication.all = replicated == "all";
  if (!out.replication.all)
    for (const std::string& name : CLI::detail::split(replicated, ','))
      if (!name.empty()) out.replication.names.insert(name);
  return out;
}

void print_results(const Session& session, const RunRecord& record, const RunRequest& request) {
  const std::string& format = session.options.format;
  auto print = [&](const Table& table) {
    print_out(table.print(format) + (format == "table" ? "\n" : ""));
  };
  if (!record.rewrite.passes.empty()) print(pass_table(record.rewrite, format == "table"));
  session.say(split_summary(*record.pieces));
  session.say(plan_summary(record.plan));
  print(step_table(record));
  if (request.check) print(number_table(record));
  if (!request.expect.empty()) print(expected_table(record));
}

/// Ends with 4 where numbers fail.
void run_all(const Session& session, const RunRequest& request, const RunDone& done) {
  const RunSummary summary = session.need(run_model(session.context, request, session.log(), done));
  if (summary.failed > 0) {
    session.say(fmt::format("{} of {} steps differ from {} by more than they may", summary.failed,
                            summary.steps, request.check ? "the reference" : request.expect));
    throw Exit{kNumericMismatch};
  }
}

std::string inside(const std::string& folder, const std::string& variant) {
  return variant.empty() ? folder : folder + "/" + variant;
}

void run_run(const Options& options, const RunArgs& args) {
  Session session(options);
  RunRequest request = args.request(session);
  request.hash_files = !args.report.empty();
  run_all(session, request, [&](const RunRecord& record, const LoadedRules& rules) {
    print_results(session, record, request);
    if (!args.report.empty())
      session.say("report: " +
                  session.need(write_report(record, rules, inside(args.report, record.variant),
                                            session.log())));
    if (!args.dump.empty())
      session.need(write_dump(record, rules.set, inside(args.dump, record.variant), session.log()));
    return Result<std::monostate>();
  });
  if (request.check) session.say("all outputs of all steps pass the check");
}

void run_report(const Options& options, const RunArgs& args) {
  Session session(options);
  const bool page = args.output.ends_with(".html") || args.output.ends_with(".htm");
  if (!page && !names_stream(args.output) && !args.output.ends_with(".txt"))
    session.die("cannot tell the type of `" + args.output + "` from its extension",
                "a report is written as .html or .txt", kUsage);
  RunRequest request = args.request(session);
  request.check = request.execute;
  request.hash_files = true;
  run_all(session, request, [&](const RunRecord& record, const LoadedRules& rules) {
    const std::string path =
        names_stream(args.output) ? args.output : variant_path(args.output, record.variant);
    session.need(write_file(path, session.need(page ? page_of(record, rules, session.log())
                                                    : text_of(record, rules.set))));
    if (!names_standard_output(path)) session.say("report: " + path);
    return Result<std::monostate>();
  });
}

void RunArgs::add_to(CLI::App& sub) {
  EngineArgs::add_to(sub);
  sub.add_option("--ranks", run.ranks,
                 "ranks in this process, in step, with exact collectives between them")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{64}))
      ->capture_default_str();
  sub.add_option("--replicated", replicated,
                 "inputs that hold the same on every rank, or `all`; others differ")
      ->type_name("NAMES");
  sub.add_flag("--no-pad", no_pad, "run each step at its own size");
  sub.add_flag("--times", run.times,
               "say in the report how long passes and steps took; without, the same input gives "
               "the same report");
}

}  // namespace

void add_run_commands(CLI::App& app, const Options& options) {
  auto args = std::make_shared<RunArgs>();
  auto* sub = app.add_subcommand("run", "Rewrite, split, plan and execute a graph");
  args->add_to(*sub);
  sub->add_flag("--check", args->run.check,
                "compare with the unrewritten graph, both against the double-precision "
                "interpreter; exit 4 if worse");
  sub->add_option("--save", args->run.save,
                  "write the outputs to this safetensors file, NAME@STEP where there are several "
                  "steps")
      ->type_name("FILE");
  CLI::Option* expect =
      sub->add_option("--expect", args->run.expect,
                      "compare the outputs with those of another system in a safetensors file, by "
                      "name or else in their order: by the RMS of the difference, beside the "
                      "errors of the unrewritten graph, which is run twice as by --check; or by "
                      "--rtol and --atol; exit 4 where one is beyond it")
          ->type_name("FILE");
  sub->add_option("--rtol", args->run.tolerance.relative,
                  "of --expect: each element, of the value; by dtype beside --atol alone")
      ->check(CLI::NonNegativeNumber)
      ->needs(expect);
  sub->add_option("--atol", args->run.tolerance.absolute, "of --expect: each element, added to it")
      ->check(CLI::NonNegativeNumber)
      ->needs(expect);
  sub->add_option("--dump", args->dump,
                  "write the graph before and after each pass, the pieces, generated sources, "
                  "plan.json and stats.json into this folder")
      ->type_name("DIR");
  sub->add_option("--report", args->report,
                  "write report.html, report.txt, plan.json and the journal into this folder")
      ->type_name("DIR");
  sub->footer(
      "Examples:\n"
      "  pwr run model.fx.txt --symbol n=arg0_1.0,arg6_1.0 -r llm -p o2 --tokens 1,7,16,300 "
      "--check\n"
      "  pwr run model.json -r my_rules.pwr -p mine -D tp=2 --check --report out/\n"
      "  pwr run model.json -r llm -p o2 --backend cpu\n"
      "  pwr run model.json -r llm -p o2 --backend cuda --driver host --check\n"
      "  pwr run model.json -r llm -p o2 --plan plan.json --steps traffic.txt\n"
      "  pwr run model.json -r llm -p o2 --weights model.safetensors --map names.json --tokens 7 "
      "--expect outputs.safetensors\n"
      "  pwr run model.json -r llm -p o2 -D tp=2 --ranks 2 --replicated ids,embed_w --check");
  sub->callback([args, &options] { run_run(options, *args); });

  auto reported = std::make_shared<RunArgs>();
  reported->run.execute = false;
  sub = app.add_subcommand(
      "report", "Rewrite, split and plan a graph, and say all of it in one page or text");
  reported->add_to(*sub);
  sub->add_flag("--run", reported->run.execute,
                "execute the steps too, and compare their numbers as run --check does");
  sub->add_option("-o,--output", reported->output,
                  "report.html: one page with the graph after each pass; report.txt, or - for "
                  "standard output: text")
      ->capture_default_str();
  sub->footer(
      "Nothing of the machine is in it, and the same input gives the same bytes (but for "
      "--times).\n"
      "Examples:\n"
      "  pwr report model.json -r llm -p o2 -o report.html\n"
      "  pwr report model.json -r llm -p o2 --run --tokens 1,7,300 -o report.html\n"
      "  pwr report model.json -r llm -p o2 | less");
  sub->callback([reported, &options] { run_report(options, *reported); });
}

}  // namespace pw::cli
